//! Many calls of programs that are cancelled at any moment, in each sandbox: nothing of them is left while the program that
//! called them lives on.

use crate::{
    client::{Person, Yard, read, text, until},
    confined::lacks,
};
use serde_json::json;
use std::{
    fs,
    io::{Read as _, copy, sink},
    net::TcpListener,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// How many calls are cancelled in each sandbox.
const CALLS: usize = 100;

/// What a program does: it leaves processes in its session and out of it, and says when it is in the midst of it.
const SCRIPT: &str = "(setsid sleep 600 &); sleep 600 & echo ready >&2; sleep 600";

/// A service that answers nobody, and counts.
#[derive(Clone, Default)]
struct Service {
    /// Requests that began to arrive.
    asked: Arc<AtomicUsize>,
    /// Connections that their caller has not closed.
    open: Arc<AtomicUsize>,
}

impl Service {
    /// Starts it, and gives its address.
    fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let service = self.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (service, mut stream) = (service.clone(), stream.unwrap());
                service.open.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || {
                    if stream.read(&mut [0]).is_ok_and(|bytes| bytes > 0) {
                        service.asked.fetch_add(1, Ordering::SeqCst);
                    }
                    // Until the caller closes it, whether in order or not.
                    let _ = copy(&mut stream, &mut sink());
                    service.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        url
    }
}

/// How many living processes bear a mark in their environment.
fn census(mark: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let bears = |process: &Path| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    processes.filter(|process| bears(process)).count()
}

/// How far a call is when it is cancelled.
enum Moment {
    /// Wherever the machine is after the caller has given way so many times.
    Any(usize),
    /// There are processes, or a connection: its own, or those of one before it that is ending.
    Begun,
    /// It is in the midst of what it does.
    Ready,
}

impl Moment {
    fn of(number: usize) -> Self {
        match number % 4 {
            0 | 1 => Self::Any(number / 2),
            2 => Self::Begun,
            _ => Self::Ready,
        }
    }
}

/// A sandbox in which calls are cancelled.
struct Cancelled {
    yard: Yard,
    mark: String,
    service: Service,
}

impl Cancelled {
    /// A program in this sandbox, `None` where this machine has it not.
    async fn new(sandbox: &str) -> Option<Self> {
        if lacks(sandbox) {
            return None;
        }
        let (name, service) = (format!("mcp-cancelled-{sandbox}"), Service::default());
        let mark = format!("{name}-{}", std::process::id());
        let form = match sandbox {
            "remote" => format!("url = \"{}\"\nallow_private = true", service.start()),
            _ => format!(
                "command = [\"/bin/sh\", \"-c\", {}]\nenv = {{ PATH = \"/usr/bin:/bin\", MARK = \"{mark}\" }}",
                json!(SCRIPT)
            ),
        };
        let config = format!(
            "[policy.rules]\nt = {{ sandbox = \"{sandbox}\" }}\n[program.t]\ndescription = \"Goes on\"\n\
             side_effects = \"read\"\n{form}\n"
        );
        let yard = Yard::before(&name, &config, &["--approve", "auto"], Person::default()).await;
        Some(Self { yard, mark: format!("MARK={mark}"), service })
    }

    /// What of its calls is there: processes and connections.
    fn left(&self) -> usize {
        census(&self.mark) + self.service.open.load(Ordering::SeqCst)
    }

    async fn cancel(&self, moment: Moment) {
        let asked = self.service.asked.load(Ordering::SeqCst);
        let sent = self.yard.send("t", json!({}), json!({})).await;
        let token = sent.progress_token.clone();
        let said = self.yard.client.service().progress.clone();
        match moment {
            Moment::Any(times) => {
                for _ in 0..times {
                    tokio::task::yield_now().await;
                }
            }
            Moment::Begun => until("it has begun", || self.left() > 0).await,
            Moment::Ready => {
                until("it is ready", || {
                    self.service.asked.load(Ordering::SeqCst) > asked
                        || said.lock().unwrap().iter().any(|note| note.progress_token == token)
                })
                .await;
            }
        }
        sent.cancel(None).await.unwrap();
    }

    async fn leave_nothing(sandbox: &str) {
        let Some(cancelled) = Self::new(sandbox).await else { return };
        for number in 0..CALLS {
            cancelled.cancel(Moment::of(number)).await;
        }
        until("nothing is left", || cancelled.left() == 0).await;
        // The engine is there, and what it holds of no call is in another's way.
        let echo = read(cancelled.yard.send("echo", json!({"text": "here"}), json!({})).await).await.unwrap();
        assert_eq!(text(&echo), "here");
        cancelled.cancel(Moment::Ready).await;
        until("nothing is left", || cancelled.left() == 0).await;
    }
}

/// SB-7: nothing is left of a hundred calls that were cancelled on the host,
#[tokio::test]
async fn a_hundred_on_the_host_leave_nothing() {
    Cancelled::leave_nothing("host").await;
}

/// in the sandbox *process*,
#[tokio::test]
async fn a_hundred_in_a_process_leave_nothing() {
    Cancelled::leave_nothing("process").await;
}

/// in the sandbox *landlock*,
#[tokio::test]
async fn a_hundred_under_landlock_leave_nothing() {
    Cancelled::leave_nothing("landlock").await;
}

/// and on another machine, to which no connection stays open.
#[tokio::test]
async fn a_hundred_on_another_machine_leave_no_connection() {
    Cancelled::leave_nothing("remote").await;
}
