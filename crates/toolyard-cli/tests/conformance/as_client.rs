//! Client mode: the suite starts the program, and acts as the server in its configuration.

use crate::{
    judges::{self, Judges, ours},
    place::dir,
    table::{Results, compare, expected},
};
use std::{path::Path, sync::Mutex, thread};

/// The number of scenarios that run at once.
const AT_ONCE: usize = 3;

/// Whether the program passes this scenario, and the suite's output.
fn judged(judges: &Judges, suite: &str, version: &[&str], scenario: &str, notes: &Path) -> (bool, String) {
    let quoted = |path: &Path| format!("'{}'", path.display());
    let program = Path::new(env!("CARGO_BIN_EXE_toolyard"));
    let command = [&judges.node(), &ours("client.mjs"), program].map(|path: &Path| quoted(path)).join(" ");
    let args = [&["client", "--command", &command, "--scenario", scenario], version].concat();
    judges.judge(suite, &args, notes)
}

fn the_client_is_judged(suite: &str, column: &str, version: &[&str]) {
    let Some(judges) = judges::place() else { return };
    let expected = expected("The client", column);
    let notes = dir(&format!("conformance-client-{suite}-{}", version.len()));
    let (waiting, found) = (Mutex::new(expected.keys()), Mutex::new((Results::new(), String::new())));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(scenario) = waiting.lock().unwrap().next() else { return };
                    let (passes, output) = judged(&judges, suite, version, scenario, &notes);
                    let mut found = found.lock().unwrap();
                    found.0.insert(scenario.clone(), passes);
                    if !passes {
                        found.1.push_str(&output);
                    }
                }
            });
        }
    });
    let (found, output) = found.into_inner().unwrap();
    compare(&expected, &found, &output);
}

/// V5: the handshake, calls, streams that break off, and questions from the server.
#[test]
fn the_client_is_judged_by_the_release() {
    the_client_is_judged("suite", "0.1.16", &[]);
}

/// The same with the preview of the next release, first in the protocol of 2025-11-25, then in that of 2026-07-28.
#[test]
fn the_client_is_judged_by_the_preview() {
    the_client_is_judged("suite-next", "0.2.0-alpha.12", &[]);
    the_client_is_judged("suite-next", "0.2.0-alpha.12, 2026-07-28", &["--spec-version", "2026-07-28"]);
}
