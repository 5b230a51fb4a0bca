//! What a module is given and gives.

use crate::{both, run};
use std::sync::{Arc, Mutex};
use toolyard_test_modules::{ARGUMENTS, CLOCK, ECHO, ENVIRONMENT, exit, print};
use toolyard_wasm::{End, Run};

/// SB-2: standard input is what was given and then its end; standard output comes back as it was printed.
#[tokio::test]
async fn input_goes_in_and_output_comes_out() {
    for module in both(ECHO) {
        for text in ["", "hello", &"x".repeat(200_000)] {
            let ended = run(&module, Run::new().input(text).kept(1 << 20, 0)).await;
            assert_eq!(ended.end, End::Exited(0));
            assert_eq!(ended.output.into_text(), text);
        }
    }
}

/// SB-2: each call is an instance of its own, at the same time too.
#[tokio::test]
async fn calls_share_nothing() {
    for module in both(ECHO) {
        let one = async |text: &str| run(&module, Run::new().input(text)).await.output.into_text();
        let (a, b, c) = tokio::join!(one("a"), one("bb"), one("ccc"));
        assert_eq!([a, b, c], ["a", "bb", "ccc"]);
    }
}

/// SB-2: the exit code is the program's.
#[tokio::test]
async fn the_exit_code_is_the_programs() {
    for code in [0, 1, 75, 125] {
        for (form, module) in both(&exit(code)).into_iter().enumerate() {
            let ended = run(&module, Run::new()).await;
            // A component of preview 2 says whether it succeeded, and no more.
            let expect = if form == 0 { code } else { u32::from(code != 0) };
            assert_eq!(ended.end, End::Exited(i32::try_from(expect).unwrap()));
        }
    }
}

/// SB-2: nothing of this process is inherited, and variables are those that were given.
#[tokio::test]
async fn the_environment_is_what_was_given() {
    for module in both(ENVIRONMENT) {
        assert_eq!(run(&module, Run::new()).await.output.into_text(), "");
        let given = Run::new().variable("A", "old").variable("B", "").variable("A", "1");
        assert_eq!(run(&module, given).await.output.into_text(), "B=\0A=1\0");
    }
}

#[tokio::test]
async fn arguments_begin_with_the_name() {
    for module in both(ARGUMENTS) {
        let given = Run::new().name("count").arguments(["--json", ""]);
        assert_eq!(run(&module, given).await.output.into_text(), "count\0--json\0\0");
    }
}

#[tokio::test]
async fn there_are_clocks_and_random_numbers() {
    for module in both(CLOCK) {
        assert_eq!(run(&module, Run::new()).await.end, End::Exited(0));
    }
}

/// SB-2: standard error is heard while it is printed, and kept apart.
#[tokio::test]
async fn errors_are_heard_and_kept_apart() {
    for module in both(&print(2, "one\ntwo", 3)) {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let ear = heard.clone();
        let ended =
            run(&module, Run::new().on_errors(move |text| ear.lock().unwrap().push(text.to_owned()))).await;
        assert_eq!(*heard.lock().unwrap(), ["one\n", "two"]);
        assert_eq!(
            (ended.output.into_text(), ended.errors.into_text()),
            (String::new(), "one\ntwo".to_owned())
        );
    }
}

/// SB-2: of a long output its start and its end are kept.
#[tokio::test]
async fn a_long_output_is_kept_at_both_ends() {
    for module in both(ECHO) {
        let text = format!("start{}end", "\n".repeat(10_000));
        let ended = run(&module, Run::new().input(&*text).kept(16, 0)).await;
        assert_eq!(ended.output.total(), 10_008);
        let kept = ended.output.into_text();
        assert!(kept.starts_with("start\n") && kept.ends_with("\nend"), "{kept}");
    }
}
