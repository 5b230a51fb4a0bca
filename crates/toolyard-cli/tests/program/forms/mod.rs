//! One contract for all forms: the same cases, with the same expectations, in every sandbox that programs have.
//!
//! ```text
//!   Case ─┬─ script ─► host, process, micro_vm   a command; a machine has busybox for it
//!         ├─ module ─► wasm                      a module that does the same
//!         └─ answer ─► remote                    a service that gives what the script would have meant
//! ```
//!
//! Each form and case prints a line that says what held, or why it cannot be. The features `wasm` and `micro-vm` add
//! their forms. Another case is another entry of `CASES`; another form is one of `Form`.
#![cfg(target_os = "linux")]

mod cases;
mod form;
#[cfg(feature = "wasm")]
mod modules;
mod seen;
mod service;

use crate::{
    child::{fed, program},
    confined,
    place::dir,
};
use cases::{CASES, Case};
use form::Form;
use seen::Seen;
use serde_json::json;
use std::fs;

/// Runs one call of the case's program.
fn run(form: Form, number: usize, case: &Case) -> Seen {
    let place = dir(&format!("forms-{}-{number}", form.name())).canonicalize().unwrap();
    fs::create_dir(place.join("work")).unwrap();
    let (sandbox, wall, more) = (form.name(), case.wall, form.settings());
    let config = format!(
        "[workspace]\nroot = \"work\"\n[retry]\nmax_attempts = 2\nbase = \"1ms\"\n{more}\n[policy.rules]\n\
         t = {{ sandbox = \"{sandbox}\", wall_time = \"{wall}\" }}\n[program.t]\ndescription = \"A tool\"\n{}\n{}\n",
        case.keys,
        form.program(case, &place)
    );
    let (file, log) = (place.join("toolyard.toml"), place.join("log.jsonl"));
    fs::write(&file, config).unwrap();
    let call =
        json!({"call_id": "a", "name": "t", "arguments": {"b": 1, "a": "x"}, "idempotency_key": "k-1"});
    let (file, events) = (file.to_str().unwrap(), log.to_str().unwrap());
    let args = ["run", "--report", "none", "--approve", "auto", "--config", file, "--events", events];
    let mut command = program(&args);
    command.env("XDG_CACHE_HOME", form::cache()).env("INHERITED", "by nobody");
    let done = fed(command, &json!({"calls": [call]}).to_string());
    let lines = fs::read_to_string(log).unwrap();
    let events = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    Seen { form, result: done.json()["results"][0].take(), events }
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
