//! What greedy and hostile programs try.

#[cfg(feature = "wasm")]
use super::modules;
use super::{
    cases::Case,
    form::Form,
    seen::Seen,
    service::Answer::{Floods, Gives, Waits},
};
#[cfg(feature = "wasm")]
use toolyard_test_modules::{Access, DESCRIPTORS, HOG, SOCKET, SPIN, open, print};

/// One cell of the table.
pub(super) struct Cell {
    pub(super) case: Case,
    /// What its rule grants at most, behind another key of the rule, and how that is called where it is refused.
    pub(super) limit: Option<(&'static str, &'static str)>,
    /// How it looks where nothing confines it, for what is no limit.
    pub(super) escapes: Option<fn(&Seen)>,
}

const READS: &str = "side_effects = \"read\"";

/// More than any machine takes.
const LONG: &str = "2m";

const HOGS: &str = "a=$(head -c 200000000 /dev/zero | tr '\\000' a); echo took all of ${#a}";
const SPINS: &str = "while :; do :; done";

pub(super) const CELLS: [Cell; 10] = [
    Cell {
        case: Case {
            name: "wall time",
            script: SPINS,
            #[cfg(feature = "wasm")]
            module: || SPIN.to_owned(),
            answer: Waits,
            keys: READS,
            wall: "1s",
            expect: |seen| seen.fails("timeout"),
        },
        limit: None,
        escapes: None,
    },
    Cell {
        case: Case {
            name: "output",
            script: "yes 0123456789abcde | head -c 2000000; echo end",
            #[cfg(feature = "wasm")]
            module: modules::floods,
            answer: Floods,
            keys: "side_effects = \"read\"\noutput_bytes = \"1KiB\"",
            wall: LONG,
            expect: |seen| assert!(seen.text().len() < 2048, "{}", seen.result),
        },
        limit: None,
        escapes: None,
    },
    Cell {
        case: Case {
            name: "memory",
            script: HOGS,
            #[cfg(feature = "wasm")]
            module: || HOG.to_owned(),
            answer: Waits,
            keys: READS,
            wall: LONG,
            expect: ends_for_want,
        },
        limit: Some((", memory = \"128MiB\"", "memory")),
        escapes: None,
    },
    Cell {
        case: Case {
            name: "memory per process",
            script: HOGS,
            #[cfg(feature = "wasm")]
            module: || HOG.to_owned(),
            answer: Waits,
            keys: READS,
            wall: LONG,
            expect: ends_for_want,
        },
        limit: Some((", memory_per_process = \"128MiB\"", "memory per process")),
        escapes: None,
    },
    Cell {
        case: Case {
            name: "CPU time",
            script: SPINS,
            #[cfg(feature = "wasm")]
            module: || SPIN.to_owned(),
            answer: Waits,
            keys: READS,
            wall: LONG,
            expect: |seen| seen.fails("execution_error"),
        },
        limit: Some((", cpu_time = \"1s\"", "CPU time")),
        escapes: None,
    },
    Cell {
        case: Case {
            name: "CPU time per process",
            script: SPINS,
            #[cfg(feature = "wasm")]
            module: || SPIN.to_owned(),
            answer: Waits,
            keys: READS,
            wall: LONG,
            expect: |seen| seen.fails("execution_error"),
        },
        limit: Some((", cpu_time_per_process = \"1s\"", "CPU time per process")),
        escapes: None,
    },
    Cell {
        case: Case {
            name: "processes",
            script: "n=0; while [ $n -lt 60 ]; do sleep 600 & n=$((n + 1)); done; echo started all",
            // It has no call that would start one.
            #[cfg(feature = "wasm")]
            module: || print(1, "started none\n", 1),
            answer: Waits,
            keys: READS,
            wall: LONG,
            expect: ends_for_want,
        },
        limit: Some((", processes = 20", "processes")),
        escapes: None,
    },
    Cell {
        case: Case {
            name: "open files",
            script: "paste $(yes /dev/null | head -n 100) && echo opened all",
            #[cfg(feature = "wasm")]
            module: || DESCRIPTORS.to_owned(),
            answer: Waits,
            keys: READS,
            wall: LONG,
            expect: ends_for_want,
        },
        limit: Some((", open_files = 32", "open files")),
        escapes: None,
    },
    Cell {
        case: Case {
            name: "files outside",
            script: "cat ../outside",
            #[cfg(feature = "wasm")]
            module: || open("../outside", Access::Read),
            answer: Gives("200 OK", "", ""),
            keys: READS,
            wall: LONG,
            expect: |seen| {
                seen.fails("execution_error");
                assert!(!seen.result.to_string().contains("secret"), "{}", seen.result);
            },
        },
        limit: None,
        escapes: Some(|seen| assert_eq!(seen.text(), "secret of others")),
    },
    Cell {
        case: Case {
            name: "sockets",
            // A machine has no bash, but the client of busybox.
            script: "read port <port; if [ -x /bin/bash ]; then /bin/bash -c \"exec 3<>/dev/tcp/127.0.0.1/$port\"; \
                     else wget -q -O- http://10.0.2.2:$port/; fi && echo connected",
            #[cfg(feature = "wasm")]
            module: || SOCKET.to_owned(),
            answer: Gives("200 OK", "", ""),
            keys: READS,
            wall: LONG,
            expect: ends_for_want,
        },
        limit: None,
        escapes: Some(|seen| assert_eq!(seen.text(), "connected\n")),
    },
];

/// It failed, for its own reasons or by the limit, before it had what it wanted.
fn ends_for_want(seen: &Seen) {
    assert!(seen.form != Form::Remote, "nothing of it is kept there");
    seen.fails("execution_error");
    for had in ["took all", "started all", "opened all", "connected"] {
        assert!(!seen.result.to_string().contains(had), "{}", seen.result);
    }
}
