//! What large answers over HTTP cost a program in memory.

use crate::web::{
    much,
    peak::most,
    server::{Asked, Reply, Web, pieces, plain},
    yard::Yard,
};
use futures::{StreamExt, stream};
use hyper::body::Bytes;
use serde_json::json;
use std::{
    env,
    fs::{self, File},
    io::Read,
    process::Command,
};

/// By how much one answer of 10 MB may raise the peak memory of the program, in kilobytes: as over stdio.
const ANSWER_KB_MAX: u64 = 64 << 10;

const KINDS: [&str; 2] = ["application/json", "text/event-stream"];

/// An answer with the result in this file, which is never in memory as a whole.
fn from_file(asked: &Asked, kind: &str, path: &str) -> Reply {
    let mut file = File::open(path).unwrap();
    let text = std::iter::from_fn(move || {
        let mut piece = vec![0; 64 << 10];
        let read = file.read(&mut piece).unwrap();
        piece.truncate(read);
        (read > 0).then(|| Bytes::from(piece))
    });
    let (before, after) = if kind == KINDS[0] { ("", "}") } else { ("data: ", "}\n\n") };
    let begin = format!("{before}{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":", asked.message["id"]);
    let text = stream::iter([begin.into()]).chain(stream::iter(text));
    pieces(kind, text.chain(stream::iter([Bytes::from(after)])))
}

/// The program: this test alone, in its own process. It makes one call, whose answer is as it is told.
#[tokio::test]
#[ignore = "started by the other test"]
async fn be_a_program_that_is_sent_much() {
    let (Ok(path), Ok(kind)) = (env::var("MUCH"), env::var("MUCH_AS")) else { return };
    let web = Web::open(move |asked| match asked.tool() {
        "odd" => from_file(asked, &kind, &path),
        _ => plain(asked),
    });
    let web = web.await;
    let yard = Yard::open(vec![web.config("s")]).await;
    assert_eq!(yard.text("s__echo", json!({})).await, "echo");
    let before = most();
    match yard.call("s__odd", json!({})).await.status {
        Ok(output) => println!("MUCH: {} parts", output.content.len()),
        Err(error) => println!("MUCH: {:?}: {}", error.kind, error.message),
    }
    println!("MUCH: {} kB, {before} kB before", most());
    assert_eq!(yard.text("s__echo", json!({})).await, "echo");
    yard.servers.shutdown().await;
    assert!(most() - before <= ANSWER_KB_MAX, "it had {} kB, {before} kB before", most());
}

/// What a program says that is sent this.
fn told(kind: &str, how: &str) -> String {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("result");
    fs::write(&path, much::much(how)).unwrap();
    let args = ["--exact", "web::memory::be_a_program_that_is_sent_much", "--ignored", "--nocapture"];
    let mut program = Command::new(env::current_exe().unwrap());
    let done = program.args(args).env("MUCH", &path).env("MUCH_AS", kind).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    said.lines().filter(|line| line.contains("MUCH:")).for_each(|line| println!("{kind} {how}: {line}"));
    assert!(done.status.success() && said.contains("1 passed"), "{kind} {how}: {said}");
    said
}

/// V4: however 10 MB are spent, in a plain answer or in an event, the program needs at most 64 MiB for them; what would
/// need more is refused, and the model reads that the call ran.
#[test]
fn an_answer_of_10_mb_takes_bounded_memory() {
    for kind in KINDS {
        for how in much::HOW {
            let said = told(kind, how);
            let refused = "OutputTooLarge: the call ran, but the answer of 's' is too large to be read: \
                           more than 100000 keys and values";
            assert_eq!(
                said.contains(refused),
                ["parts", "structured"].contains(&how),
                "{kind} {how}: {said}"
            );
        }
    }
}
