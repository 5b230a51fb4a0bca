//! What each sandbox keeps from a program that is greedy or hostile: a cell of the table for each thing that it tries. Each is
//! kept, or refused by name before anything runs. What the table has no word for, on the host and on another machine, is told
//! too. Each form prints its line of the table, as it was in this run.

use super::{
    call,
    cases::Case,
    command, events,
    form::Form,
    greedy::{CELLS, Cell},
    place,
    seen::Seen,
};
use crate::{
    child::{fed, program},
    confined, landlock,
};
use serde_json::json;
use std::{fs, io::ErrorKind, net::TcpListener, path::Path};

/// What became of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    Held,
    /// By name, before anything ran.
    Refused,
    /// It is done without a sandbox, which `check` says.
    Unconfined,
    /// There is nothing here that it could reach.
    Elsewhere,
}

/// The group that is delegated to these tests, for what confines by processes.
fn group(form: Form) -> Option<String> {
    let is_of_processes = matches!(form, Form::Process | Form::Landlock);
    std::env::var("TOOLYARD_CGROUP").ok().filter(|_| is_of_processes)
}

/// Whether a limit has to be refused, if that is known beforehand.
fn is_refused(form: Form, limit: &str) -> Option<bool> {
    let of_each = ["memory per process", "CPU time per process", "open files"];
    match form {
        Form::Host | Form::Remote => Some(true),
        Form::Process | Form::Landlock if of_each.contains(&limit) => Some(false),
        Form::Process if limit == "processes" && group(form).is_none() => {
            Some(rustix::process::geteuid().is_root())
        }
        Form::Process | Form::Landlock => match group(form) {
            None => Some(true),
            // A group may lack controllers, but CPU time is always known.
            Some(_) => (limit == "CPU time").then_some(false),
        },
        #[cfg(feature = "wasm")]
        Form::Wasm => Some(false),
        // The memory of a machine has sizes, of which one has to be small enough.
        #[cfg(all(feature = "micro-vm", target_arch = "x86_64"))]
        Form::MicroVm => (!limit.starts_with("memory")).then_some(true),
    }
}

/// Tries one cell, which listens for connections of programs.
fn tried(form: Form, number: usize, cell: &Cell) -> Kept {
    let is_outside = cell.limit.is_none() && cell.escapes.is_some();
    if form == Form::Remote && is_outside {
        return Kept::Elsewhere;
    }
    let place = place(form, &format!("cell-{number}"));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    fs::write(place.join("outside"), "secret of others").unwrap();
    fs::write(place.join("work/port"), format!("{}\n", listener.local_addr().unwrap().port())).unwrap();
    let seen = run(form, &place, &cell.case, cell.limit.map_or("", |(rule, _)| rule));
    if let Some((_, limit)) = cell.limit {
        let was_refused = seen.result["error"]["code"] == "sandbox_error";
        let expected = is_refused(form, limit).unwrap_or(was_refused);
        assert_eq!(was_refused, expected, "{}: {}", cell.case.name, seen.result);
        if was_refused {
            seen.has_outcome("not_started");
            seen.says(&format!("sandbox '{}' cannot limit {limit}: the call was not run", form.name()));
            return Kept::Refused;
        }
    }
    let connected =
        listener.accept().map_err(|error| assert_eq!(error.kind(), ErrorKind::WouldBlock)).is_ok();
    if let (Form::Host, Some(escapes)) = (form, cell.escapes) {
        escapes(&seen);
        assert_eq!(connected, cell.case.script.contains("port"), "{}", seen.result);
        is_called_unconfined(&place);
        return Kept::Unconfined;
    }
    assert!(!connected, "{}: {}", cell.case.name, seen.result);
    (cell.case.expect)(&seen);
    Kept::Held
}

fn run(form: Form, place: &Path, case: &Case, rule: &str) -> Seen {
    let group = group(form).map(|group| format!("[sandbox.process]\ncgroup = {}\n", json!(group)));
    let tool = format!("{}\n{}\n{}", case.keys, form.program(case, place), group.unwrap_or_default());
    let rule = format!("wall_time = \"{}\"{rule}", case.wall);
    let done = fed(command(form, place, &tool, &rule), &call("a"));
    Seen { form, result: done.json()["results"][0].take(), events: events(place) }
}

/// `check` says of the tool that nothing confines it.
fn is_called_unconfined(place: &Path) {
    let file = place.join("toolyard.toml");
    let done = fed(program(&["check", "--config", file.to_str().unwrap()]), "");
    assert!(format!("{}{}", done.stdout, done.stderr).contains("unconfined"), "{done:?}");
}

/// All cells of one form, and its line of the table.
fn keep(form: Form) {
    let kept = CELLS.iter().enumerate().map(|(number, cell)| (cell, tried(form, number, cell)));
    let kept: Vec<String> = kept
        .map(|(cell, kept)| {
            let said = match kept {
                Kept::Held => "held",
                Kept::Refused => "refused by name",
                Kept::Unconfined => "unconfined",
                Kept::Elsewhere => "elsewhere",
            };
            format!("{} {said}", cell.case.name)
        })
        .collect();
    eprintln!("{:<8} keeps: {}", form.name(), kept.join(", "));
}

/// SB-4: what a program takes and tries is bounded or refused on the host,
#[test]
fn cells_of_the_host() {
    keep(Form::Host);
}

/// in a confined process,
#[test]
fn cells_of_a_process() {
    if !confined::is_missing() {
        keep(Form::Process);
    }
}

/// in one that landlock confines,
#[test]
fn cells_of_landlock() {
    if !landlock::is_missing() {
        keep(Form::Landlock);
    }
}

/// on another machine,
#[test]
fn cells_of_a_service() {
    keep(Form::Remote);
}

/// in a module,
#[cfg(feature = "wasm")]
#[test]
fn cells_of_a_module() {
    keep(Form::Wasm);
}

/// and in a virtual machine.
#[cfg(all(feature = "micro-vm", target_arch = "x86_64"))]
#[test]
fn cells_of_a_virtual_machine() {
    if !super::form::has_no_machines() {
        keep(Form::MicroVm);
    }
}
