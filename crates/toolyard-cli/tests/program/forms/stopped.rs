//! The program is interrupted while a call runs, in each form: the call is cancelled, what it said so far is kept, and nothing
//! of it is left.

#[cfg(feature = "wasm")]
use super::modules;
use super::{call, cases::Case, command, events, form::Form, place, seen::Seen, service::Answer};
use crate::{
    confined::{self, until},
    landlock,
};
use std::{
    fs,
    io::{Read as _, Write as _, copy, sink},
    net::TcpListener,
    path::Path,
    process::Command,
    sync::mpsc::{self, Receiver},
    thread,
};

const GOES_ON: Case = Case {
    name: "is interrupted",
    script: "echo so far; (setsid sleep 600 &); echo ready >&2; sleep 600",
    #[cfg(feature = "wasm")]
    module: modules::says_and_goes_on,
    answer: Answer::Waits,
    keys: "side_effects = \"read\"",
    wall: "2m",
    expect: |seen| {
        seen.fails("cancelled");
        // What a service has not answered is not known.
        if seen.form != Form::Remote {
            seen.says("so far");
        }
    },
};

/// A service that never answers: its address, and what tells of its one connection, first that something came, then that it
/// was closed.
fn service() -> (String, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        stream.read_exact(&mut [0]).unwrap();
        tell.send(()).unwrap();
        let _ = copy(&mut stream, &mut sink());
        tell.send(()).unwrap();
    });
    (url, told)
}

/// How many living processes know themselves as those of this call.
fn census(id: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let mark = format!("TOOLYARD_CALL_ID={id}");
    let bears = |process: &Path| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    processes.filter(|process| bears(process)).count()
}

/// Interrupts the program once the call runs.
fn interrupted(form: Form) {
    let (place, (url, told)) = (place(form, "stopped"), service());
    let tool = match form {
        Form::Remote => format!("url = \"{url}\"\nallow_private = true"),
        _ => form.program(&GOES_ON, &place),
    };
    let rule = format!("wall_time = \"{}\"", GOES_ON.wall);
    let mut command = command(form, &place, &format!("{}\n{tool}", GOES_ON.keys), &rule);
    let id = format!("stopped-{}-{}", form.name(), std::process::id());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(call(&id).as_bytes()).unwrap();
    if form == Form::Remote {
        told.recv().unwrap();
    } else {
        let log = place.join("log.jsonl");
        until(|| fs::read_to_string(&log).unwrap_or_default().contains("ready\\n"));
    }
    if matches!(form, Form::Host | Form::Process | Form::Landlock) {
        assert!(census(&id) > 1, "its processes are known by its id");
    }
    let signalled = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(signalled.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(census(&id), 0, "something is left");
    if form == Form::Remote {
        told.recv().expect("the connection is closed");
    }
    let mut results: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    (GOES_ON.expect)(&Seen { form, result: results["results"][0].take(), events: events(&place) });
    eprintln!("{:<8} a program that {}: held", form.name(), GOES_ON.name);
}

/// SC-8, SB-7: a call on the host,
#[test]
fn an_interrupt_ends_a_program_on_the_host() {
    interrupted(Form::Host);
}

/// in a confined process,
#[test]
fn an_interrupt_ends_a_process() {
    if !confined::is_missing() {
        interrupted(Form::Process);
    }
}

/// in one that landlock confines,
#[test]
fn an_interrupt_ends_what_landlock_confines() {
    if !landlock::is_missing() {
        interrupted(Form::Landlock);
    }
}

/// on another machine,
#[test]
fn an_interrupt_ends_the_call_of_a_service() {
    interrupted(Form::Remote);
}

/// in a module,
#[cfg(feature = "wasm")]
#[test]
fn an_interrupt_ends_a_module() {
    interrupted(Form::Wasm);
}

/// and in a virtual machine is cancelled.
#[cfg(all(feature = "micro-vm", target_arch = "x86_64"))]
#[test]
fn an_interrupt_ends_a_virtual_machine() {
    if !super::form::has_no_machines() {
        interrupted(Form::MicroVm);
    }
}
