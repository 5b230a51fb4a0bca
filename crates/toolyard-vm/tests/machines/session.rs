//! A session in a machine.

use super::{Yard, shell};
use std::{sync::mpsc, time::SystemTime};
use toolyard_vm::{Call, End};

/// SB-2, SB-6: a shell gets its input and its variables, says what it does, and finds a system of its own: root without
/// a network, and the time of the host.
#[tokio::test]
async fn a_shell_works_in_a_system_of_its_own() {
    let Some(yard) = Yard::new() else { return };
    let (heard, said) = mpsc::channel();
    let script = "cat; echo; echo $WHO; echo one >&2; id -u; tail -n +3 /proc/net/dev | grep -cv lo:; date +%s; echo two >&2; exit 7";
    let call = shell(script).variable("WHO", "me").input("{\"a\":1}");
    let call = call.on_errors(move |text| heard.send(text.to_owned()).unwrap());
    let ended = yard.run(call).await;
    assert_eq!(ended.end, End::Exited(7), "{ended:?}");
    let output = ended.output.into_text();
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines[..4], ["{\"a\":1}", "me", "0", "0"], "{output}");
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    assert!(now - lines[4].parse::<u64>().unwrap() < 600, "{output}");
    assert_eq!(ended.errors.into_text(), "one\ntwo\n");
    assert_eq!(said.iter().collect::<String>(), "one\ntwo\n");
    assert_eq!(ended.changes, Ok(Vec::new()));
    yard.until_empty().await;
}

/// SB-2: a program for people has no input and one output, which is heard while it runs.
#[tokio::test]
async fn both_outputs_of_a_program_for_people_are_one() {
    let Some(yard) = Yard::new() else { return };
    let (heard, said) = mpsc::channel();
    let call = shell("cat; echo one; echo two >&2; echo three; exit 3").merged();
    let call = call.on_errors(move |text| heard.send(text.to_owned()).unwrap());
    let ended = yard.run(call).await;
    assert_eq!(ended.end, End::Exited(3), "{ended:?}");
    assert_eq!((ended.output.into_text(), ended.errors.total()), ("one\ntwo\nthree\n".to_owned(), 0));
    assert_eq!(said.iter().collect::<String>(), "one\ntwo\nthree\n");
}

/// SM-3: a program that is not there has not started.
#[tokio::test]
async fn a_program_that_is_not_there_has_not_started() {
    let Some(yard) = Yard::new() else { return };
    let ended = yard.run(Call::new("/no/such/program")).await;
    assert!(matches!(&ended.end, End::NotStarted(why) if why.contains("No such file")), "{ended:?}");
    let long = "a".repeat(toolyard_vm::protocol::LINE_BYTES_MAX);
    let ended = yard.run(shell("true").arguments([long])).await;
    assert!(matches!(&ended.end, End::NotStarted(why) if why.contains("in one message")), "{ended:?}");
}

/// SB-7: nothing waits for a process that holds the output.
#[tokio::test]
async fn what_a_program_leaves_is_not_waited_for() {
    let Some(yard) = Yard::new() else { return };
    let ended = yard.run(shell("sleep 1000 & setsid sleep 1000 & echo done")).await;
    assert_eq!((ended.end, ended.output.into_text()), (End::Exited(0), "done\n".to_owned()));
}

/// SB-4: it has the memory that its machine has.
#[tokio::test]
async fn a_program_that_takes_all_memory_is_ended_by_its_kernel() {
    let Some(yard) = Yard::new() else { return };
    // One line without an end, which is kept whole.
    let ended = yard.run(shell("exec awk 'BEGIN { s = \"0123456789abcdef\"; while (1) s = s s }'")).await;
    assert!(matches!(ended.end, End::Killed(9) | End::Exited(1..)), "{ended:?}");
}
