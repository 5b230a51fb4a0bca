//! What `toolyard serve` warns of when it starts.

use super::Served;
use crate::place::dir;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

/// HT-10: whoever serves others without encryption is warned.
#[test]
fn clear_text_for_others_is_warned_of() {
    let place = dir("serve-public");
    let mut child = Command::new(env!("CARGO_BIN_EXE_toolyard"))
        .args(["serve", "--http", "0.0.0.0:0", "--workspace"])
        .arg(&place)
        .current_dir(&place)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let warned = lines.into_iter().find(|line| line.contains("is not encrypted"));
    assert!(warned.is_some_and(|line| line.contains("--tls-cert and --tls-key")));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// What a server with this configuration says until its end.
fn said(place: &Path, config: &str) -> Vec<String> {
    fs::write(place.join("toolyard.toml"), config).unwrap();
    let mut served = Served::start(place, &[]);
    served.signal(Signal::INT);
    let said = (&mut served.said).map(Result::unwrap).collect();
    assert_eq!(served.child.wait().unwrap().code(), Some(130));
    said
}

/// HT-6: tools that run programs outside of a sandbox are named, because no approval bounds what these do; without such
/// tools nothing is said.
#[test]
fn tools_that_nothing_confines_are_warned_of() {
    let place = dir("serve-unconfined");
    let warnings = |config: &str| {
        let mut said = said(&place, config);
        said.retain(|line| line.contains("warning"));
        said
    };
    assert_eq!(warnings(""), [""; 0]);
    let program = "[program.count]\ndescription = \"Counts\"\ncommand = [\"wc\"]\n";
    let on_host = "[policy.rules]\ncount = { sandbox = \"host\" }\n";
    let both = format!("[builtin]\nenable = [\"read_file\", \"shell\"]\n{program}{on_host}");
    let said = warnings(&both);
    assert_eq!(said.len(), 1, "{said:?}");
    let names = "toolyard: warning: count, shell may run programs outside of a sandbox: whoever is allowed to call them";
    assert!(said[0].starts_with(names), "{said:?}");
}
