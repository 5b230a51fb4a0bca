//! One contract for all forms: the same cases, with the same expectations, in every sandbox that programs have.
//!
//! ```text
//!   Case ─┬─ script ─► host, process, landlock,  a command; a machine has busybox for it
//!         │            micro_vm
//!         ├─ module ─► wasm                      a module that does the same
//!         └─ answer ─► remote                    a service that gives what the script would have meant
//! ```
//!
//! Two more tables have the same forms: `cells`, of what greedy and hostile programs try, and `stopped`, of one that is
//! interrupted.
//!
//! Each form and case prints a line that says what held, or why it cannot be. The features `wasm` and `micro-vm` add
//! their forms. Another case is another entry of `CASES`; another form is one of `Form`.
#![cfg(target_os = "linux")]

mod cases;
mod cells;
mod form;
mod greedy;
#[cfg(feature = "wasm")]
mod modules;
mod seen;
mod service;
mod stopped;

use crate::{
    child::{fed, program},
    confined, landlock,
    place::dir,
};
use cases::{CASES, Case};
use form::Form;
use seen::Seen;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// An empty place of this form.
fn place(form: Form, name: &str) -> PathBuf {
    let place = dir(&format!("forms-{}-{name}", form.name())).canonicalize().unwrap();
    fs::create_dir(place.join("work")).unwrap();
    place
}

/// The program that runs calls of a tool in this form, with the keys of the tool and more of its rule.
fn command(form: Form, place: &Path, tool: &str, rule: &str) -> Command {
    let (sandbox, more) = (form.name(), form.settings());
    let config = format!(
        "[workspace]\nroot = \"work\"\n[retry]\nmax_attempts = 2\nbase = \"1ms\"\n{more}\n[policy.rules]\n\
         t = {{ sandbox = \"{sandbox}\", {rule} }}\n[program.t]\ndescription = \"A tool\"\n{tool}\n"
    );
    let (file, log) = (place.join("toolyard.toml"), place.join("log.jsonl"));
    fs::write(&file, config).unwrap();
    let (file, events) = (file.to_str().unwrap(), log.to_str().unwrap());
    let args = ["run", "--report", "none", "--approve", "auto", "--config", file, "--events", events];
    let mut command = program(&args);
    command.env("XDG_CACHE_HOME", form::cache()).env("INHERITED", "by nobody");
    command
}

/// A response with one call of the tool.
fn call(id: &str) -> String {
    let arguments = json!({"b": 1, "a": "x"});
    json!({"calls": [{"call_id": id, "name": "t", "arguments": arguments, "idempotency_key": "k-1"}]})
        .to_string()
}

/// What was written of a place's calls.
fn events(place: &Path) -> Vec<Value> {
    let lines = fs::read_to_string(place.join("log.jsonl")).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Runs one call of the case's program.
fn run(form: Form, number: usize, case: &Case) -> Seen {
    let place = place(form, &number.to_string());
    let tool = format!("{}\n{}", case.keys, form.program(case, &place));
    let command = command(form, &place, &tool, &format!("wall_time = \"{}\"", case.wall));
    let done = fed(command, &call("a"));
    Seen { form, result: done.json()["results"][0].take(), events: events(&place) }
}

/// All cases in one form.
fn hold(form: Form) {
    for (number, case) in CASES.iter().enumerate() {
        if let (Form::Remote, service::Answer::Cannot(why)) = (form, &case.answer) {
            eprintln!("{:<8} a program that {}: cannot be: {why}", form.name(), case.name);
            continue;
        }
        let seen = run(form, number, case);
        (case.expect)(&seen);
        eprintln!("{:<8} a program that {}: held", form.name(), case.name);
    }
}

/// SB-2, SB-3: what a program does means the same on the host,
#[test]
fn the_contract_holds_on_the_host() {
    hold(Form::Host);
}

/// in a confined process,
#[test]
fn the_contract_holds_in_a_process() {
    if !confined::is_missing() {
        hold(Form::Process);
    }
}

/// in a process that landlock confines,
#[test]
fn the_contract_holds_under_landlock() {
    if !landlock::is_missing() {
        hold(Form::Landlock);
    }
}

/// on another machine,
#[test]
fn the_contract_holds_in_a_service() {
    hold(Form::Remote);
}

/// in a module,
#[cfg(feature = "wasm")]
#[test]
fn the_contract_holds_in_a_module() {
    hold(Form::Wasm);
}

/// and in a virtual machine.
#[cfg(all(feature = "micro-vm", target_arch = "x86_64"))]
#[test]
fn the_contract_holds_in_a_virtual_machine() {
    if !form::has_no_machines() {
        hold(Form::MicroVm);
    }
}
