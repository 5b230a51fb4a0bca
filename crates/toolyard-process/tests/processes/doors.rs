//! Confined programs with a door: it is their only way out.

use super::{
    confined::{is_missing, tried, within},
    containments::helper,
    yard::{Yard, run},
};
use std::fs;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use toolyard_process::{Door, Program, Report, Started};

/// A command in bash, which can connect, confined to its yard with a door.
fn bash(yard: &Yard, command: &str) -> Program {
    let program = Program::new("/bin/bash").args(["-c", command]).env("PATH", "/usr/bin:/bin");
    let program = program.env("LANG", "C").env("MARK", yard.path()).directory(yard.path());
    program.confined(within(&yard.path(), true).door())
}

/// All that a program says, once its pipe has ended.
async fn said(started: &mut Started) -> String {
    let mut text = String::new();
    started.stdout.read_to_string(&mut text).await.unwrap();
    text
}

/// SB-6: what a program sends to its door arrives at whoever started it, from any of its processes, and answers go back.
#[tokio::test]
async fn a_door_leads_to_whoever_started_the_program() {
    if is_missing().await {
        return;
    }
    let yard = Yard::new();
    let talk = format!("(exec 3<>/dev/tcp/127.0.0.1/{}; echo in >&3; cat <&3) & wait", Door::PORT);
    let mut started = bash(&yard, &talk).start(&helper()).unwrap();
    let listener = started.door.take().unwrap().opened().await.unwrap();
    let (mut stream, from) = listener.accept().await.unwrap();
    assert!(from.ip().is_loopback());
    let mut asked = [0; 3];
    stream.read_exact(&mut asked).await.unwrap();
    stream.write_all(b"out\n").await.unwrap();
    drop(stream);
    assert_eq!((&asked, &*said(&mut started).await), (b"in\n", "out\n"));
    assert!(matches!(started.processes.ended().await, Report::Ran(_)));
    yard.until_empty().await;
}

/// SB-6: nothing but the door is there: neither what listens on this machine, nor another one, nor another door.
#[tokio::test]
async fn a_door_is_the_only_way_out() {
    if is_missing().await {
        return;
    }
    let (yard, host) = (Yard::new(), TcpListener::bind("0.0.0.0:0").await.unwrap());
    let port = host.local_addr().unwrap().port();
    let mut other = bash(&yard, "sleep 600").start(&helper()).unwrap();
    let other_listener = other.door.take().unwrap().opened().await.unwrap();
    let places = [
        format!("127.0.0.1/{port}"),
        format!("127.0.0.2/{port}"),
        format!("::1/{port}"),
        "192.0.2.1/80".to_owned(),
        "10.0.0.1/3128".to_owned(),
        "169.254.169.254/80".to_owned(),
        "::ffff:192.0.2.1/80".to_owned(),
        "2001:db8::1/80".to_owned(),
    ];
    let connect = |place: &String| format!("(exec 3<>/dev/tcp/{place}) && echo reached {place};");
    let connect: String = places.iter().map(connect).collect();
    let (text, report) = run(bash(&yard, &format!("{connect} echo tried")), &helper()).await;
    assert!(text.ends_with("tried\n") && !text.contains("reached"), "{report:?}: {text}");
    assert_eq!(text.matches("Connection refused\n").count() / 2, 3, "{text}");
    assert_eq!(text.matches("Network is unreachable\n").count() / 2, 5, "{text}");
    for listener in [host, other_listener] {
        let listener = listener.into_std().unwrap();
        assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    }
    drop(other);
    yard.until_empty().await;
}

/// SB-6: when its listener is gone, so is the way out.
#[tokio::test]
async fn a_door_that_is_closed_leads_nowhere() {
    if is_missing().await {
        return;
    }
    let yard = Yard::new();
    let ask = format!("read; exec 3<>/dev/tcp/127.0.0.1/{}", Door::PORT);
    let mut started = bash(&yard, &ask).piped_input().start(&helper()).unwrap();
    drop(started.door.take().unwrap().opened().await.unwrap());
    started.stdin.take().unwrap().write_all(b"\n").await.unwrap();
    let text = said(&mut started).await;
    assert!(text.contains("Connection refused"), "{text}");
}

/// SB-4, SB-6: with a door a program can make TCP sockets, and all else fails as without one.
#[tokio::test]
async fn a_door_opens_nothing_else() {
    if is_missing().await {
        return;
    }
    let (yard, outside) = (Yard::new(), Yard::new());
    fs::write(outside.path().join("secret"), "secret").unwrap();
    fs::write(yard.path().join("kept"), "kept").unwrap();
    let confinement = within(&yard.path(), true).keep(yard.path().join("kept")).door();
    let Some(text) = tried(&yard, &outside, confinement).await else { return };
    let done: Vec<&str> = text.lines().filter_map(|line| line.strip_suffix(": done")).collect();
    // The last by a number that few kernels know.
    assert!(
        done == ["socket inet", "kill init"] || done == ["socket inet", "kill init", "x32 socket"],
        "{text}"
    );
    let sockets = text.lines().filter(|line| line.starts_with("socket") && line.ends_with(": EPERM"));
    assert_eq!(sockets.count(), 12, "{text}");
}

/// A program that is not confined, or has no door, has none.
#[tokio::test]
async fn a_door_has_to_be_asked_for() {
    if is_missing().await {
        return;
    }
    let yard = Yard::new();
    let mut started = yard.shell("true").confined(within(&yard.path(), true)).start(&helper()).unwrap();
    assert!(started.door.is_none());
    started.processes.ended().await;
}
