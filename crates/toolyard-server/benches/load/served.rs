//! This program again, as a server whose processor time and memory are its own.

use crate::{client::Answer, linux::Failed, used::Used};
use axum::{
    Router,
    body::{Body, Bytes},
    http::{HeaderName, HeaderValue},
    response::Response,
    routing::post,
};
use std::{
    env,
    io::{BufRead as _, BufReader, Write as _},
    net::SocketAddr,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::Arc,
};
use tokio::{net::TcpListener, runtime::Builder};
use toolyard::{Engine, ToolContext, ToolSpec, tool_fn};
use toolyard_server::{Front, Scope, SecretHash, Server, ServerOptions, Token};

/// The secret of the only token.
pub(crate) const SECRET: &str = "a secret for a bench";

/// The word for a tool whose calls run in place.
const INLINE: &str = "inline";

/// What is served.
#[derive(Debug, Clone)]
pub(crate) enum What {
    /// An engine with one tool, whose calls run in tasks or, if it says so, in place.
    Toolyard { inline: bool },
    /// This answer to every turn.
    Constant(Answer),
}

impl What {
    /// What this argument of the program names, if it does.
    pub(crate) fn named(argument: &str) -> Option<Self> {
        match argument.strip_prefix("--serve=")? {
            "" => Some(Self::Toolyard { inline: false }),
            INLINE => Some(Self::Toolyard { inline: true }),
            answer => {
                let (headers, body) = answer.split_once("\n\n")?;
                let headers = headers.lines().filter_map(|line| line.split_once(": "));
                let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
                Some(Self::Constant(Answer { headers, body: body.to_owned() }))
            }
        }
    }

    fn argument(&self) -> String {
        match self {
            Self::Toolyard { inline } => format!("--serve={}", if *inline { INLINE } else { "" }),
            Self::Constant(Answer { headers, body }) => {
                let headers: Vec<_> =
                    headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
                format!("--serve={}\n\n{body}", headers.join("\n"))
            }
        }
    }
}

/// A server in a process of its own, which ends with this value.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
    child: Child,
}

impl Served {
    pub(crate) fn start(what: What) -> Result<Self, Failed> {
        let mut child = Command::new(env::current_exe()?)
            .arg(what.argument())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (asks, answers) = pipes.ok_or("a child has no pipes")?;
        let mut answers = BufReader::new(answers);
        let mut address = String::new();
        answers.read_line(&mut address)?;
        Ok(Self { address: address.trim().parse()?, asks, answers, child })
    }

    /// What it has used until now.
    pub(crate) fn used(&mut self) -> Result<Used, Failed> {
        self.asks.write_all(b"\n")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Used::read(&line)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // One that has ended is not there to be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves, and tells what was used for each line on standard input, until that ends.
pub(crate) fn serve(what: What) -> Result<(), Failed> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    println!("{}", listener.local_addr()?);
    match what {
        What::Toolyard { inline } => {
            let server = runtime.block_on(server(inline))?;
            runtime.spawn(async move { server.serve(listener, Default::default()).await });
        }
        What::Constant(answer) => {
            let header = |(name, value): &(String, String)| Ok((name.parse()?, value.parse()?));
            let headers: Result<Arc<[_]>, Failed> = answer.headers.iter().map(header).collect();
            let (headers, answer): (Arc<[(HeaderName, HeaderValue)]>, _) =
                (headers?, Bytes::from(answer.body));
            let turn = move |body: Bytes| async move {
                drop(body);
                let mut response = Response::new(Body::from(answer));
                // One allocation for all of them, as ours has.
                response.headers_mut().reserve(headers.len() + 1);
                response.headers_mut().extend(headers.iter().cloned());
                response
            };
            let opened = || async { axum::http::StatusCode::CREATED };
            let app =
                Router::new().route("/sessions", post(opened)).route("/sessions/{id}/turns", post(turn));
            runtime.spawn(async move { axum::serve(listener, app).await });
        }
    }
    for line in std::io::stdin().lines() {
        line?;
        println!("{}", Used::now()?);
    }
    Ok(())
}

async fn server(inline: bool) -> Result<Server, Failed> {
    let spec = ToolSpec::pure("nothing");
    let spec = if inline { spec.inline() } else { spec };
    let nothing = tool_fn(spec, |(): (), _: ToolContext| async { Ok("") });
    let front = Front::default();
    let engine =
        Engine::builder().tool(nothing).approver(front.clone()).events(front.clone()).build().await?;
    let token = Token::new("bench", SecretHash::of(SECRET), [Scope::Call]);
    Ok(Server::new(engine, front, ServerOptions::default().token(token))?)
}
