//! Conversations over pipes within this process, on paused time (AG-1 to AG-3).

mod bytes;

use super::*;
use serde_json::json;
use std::time::Duration;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex},
    task::JoinHandle,
    time::{Instant, sleep},
};
use toolyard::{Capabilities, Engine, ToolContext, ToolError, tool_fn};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Wait {
    ms: u64,
    #[serde(default)]
    fails: bool,
}

/// An agent, as a test plays it.
struct Agent {
    to: DuplexStream,
    from: BufReader<DuplexStream>,
    orders: watch::Sender<Order>,
    talk: JoinHandle<Talked>,
    since: Instant,
    _engine: Engine,
}

/// How many bytes wait in a pipe.
const PIPE: usize = 64 << 10;

async fn waits(wait: Wait, cx: ToolContext) -> Result<String, ToolError> {
    cx.emit("waiting");
    sleep(Duration::from_millis(wait.ms)).await;
    if wait.fails { Err(ToolError::execution("no")) } else { Ok(format!("{} ms", wait.ms)) }
}

async fn agent() -> Agent {
    let deltas = Deltas::default();
    let engine = Engine::builder()
        .tool(tool_fn(ToolSpec::read("read"), waits))
        .tool(tool_fn(ToolSpec::write("write"), waits))
        .tool(tool_fn(ToolSpec::read("secret"), waits))
        .tool(tool_fn(ToolSpec::read("large"), |_: Wait, _: ToolContext| async { Ok("x".repeat(256 << 10)) }))
        .confirmations(toolyard::Confirmations::auto())
        .events(deltas.clone())
        .build()
        .await
        .unwrap();
    let capabilities = Capabilities::default().tools(["read", "write", "large"]);
    let options = toolyard::SessionOptions::default().capabilities(capabilities);
    let session = engine.open("s", options).unwrap();
    let ((to, from), (their_to, their_from)) = (duplex(PIPE), duplex(PIPE));
    let (orders, ordered) = watch::channel(Order::Talk);
    let observer = Observer::new(session.id(), session.agent(), None);
    let talk = Talk::new(TalkParts {
        from,
        to: their_to,
        session,
        input: Some(Arc::new(json!({"task": 1}))),
        long_lines: LongLines::default(),
        answers: AnswersRoom::default(),
        deltas,
        observer,
        recorded: None,
        orders: ordered,
    });
    let talk = tokio::spawn(talk.run(|| {}));
    Agent { to, from: BufReader::new(their_from), orders, talk, since: Instant::now(), _engine: engine }
}

impl Agent {
    async fn say(&mut self, line: &Value) {
        self.to.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn call(&mut self, id: &str, tool: &str, ms: u64) {
        self.say(&json!({"op": "tool_call", "tool_call_id": id, "tool": tool, "args": {"ms": ms}})).await;
    }

    async fn call_after(&mut self, id: &str, tool: &str, ms: u64, after: &[&str]) {
        let args = json!({"ms": ms});
        self.say(&json!({"op": "tool_call", "tool_call_id": id, "tool": tool, "args": args, "after": after}))
            .await;
    }

    async fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    /// The next line in short, and when it came.
    async fn short(&mut self) -> String {
        let line = self.hear().await;
        let id = line["tool_call_id"].as_str().unwrap_or("-");
        let what = match (line["op"].as_str().unwrap(), &line["ok"]) {
            ("tool_response", Value::Bool(true)) => "ok".to_owned(),
            ("tool_response", _) => line["error"].as_str().unwrap().to_owned(),
            (op, _) => op.to_owned(),
        };
        format!("{id} {what} {}", self.since.elapsed().as_millis())
    }

    async fn shorts(&mut self, count: usize) -> Vec<String> {
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(self.short().await);
        }
        all
    }

    /// Closes its output, waits for the end of its input, and exits.
    async fn ends(mut self) -> Talked {
        drop(self.to);
        let mut rest = String::new();
        self.from.read_to_string(&mut rest).await.unwrap();
        self.orders.send_replace(Order::Exited);
        self.talk.await.unwrap()
    }
}

/// AG-1, AG-2: a call and its answer; the greeting; a bye with a result.
#[tokio::test(start_paused = true)]
async fn an_agent_says_hello_calls_and_says_bye() {
    let mut agent = agent().await;
    agent.say(&json!({"op": "hello", "protocol": 1})).await;
    let welcome = agent.hear().await;
    assert_eq!((&welcome["agent"], &welcome["input"]), (&json!("root"), &json!({"task": 1})));
    let tools: Vec<_> = welcome["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(tools, ["large", "read", "write"]);
    agent.call("c", "read", 5).await;
    let expect = json!({"op": "tool_response", "tool_call_id": "c", "ok": true,
        "result": {"content": [{"type": "text", "text": "5 ms"}], "text": "5 ms"}});
    assert_eq!(agent.hear().await, expect);
    agent.say(&json!({"op": "bye", "result": [1]})).await;
    let mut rest = String::new();
    agent.from.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "");
    // What it says after that harms nobody, and is not its result.
    agent.say(&json!({"op": "sing"})).await;
    agent.orders.send_replace(Order::Exited);
    let talked = agent.talk.await.unwrap();
    assert_eq!(talked, Talked { why: TalkEnd::Over, result: Some(json!([1])) });
}

/// AG-3: reads overlap, a write waits for what stands before it, and what stands behind waits for it; answers come as calls
/// end, and the next batch begins when all is answered.
#[tokio::test(start_paused = true)]
async fn what_is_sent_at_once_is_one_batch() {
    let mut agent = agent().await;
    for (id, tool, ms) in
        [("slow", "read", 30), ("fast", "read", 10), ("w", "write", 10), ("last", "read", 5)]
    {
        agent.call(id, tool, ms).await;
    }
    assert_eq!(agent.shorts(4).await, ["fast ok 10", "slow ok 30", "w ok 40", "last ok 45"]);
    agent.call("w", "write", 5).await;
    assert_eq!(agent.short().await, "w ok 50");
    assert_eq!(agent.ends().await.why, TalkEnd::Over);
}

/// AG-3: `turn_end` holds back what follows, and so does an id that the batch has had.
#[tokio::test(start_paused = true)]
async fn a_turn_ends_when_it_is_told_to() {
    let mut agent = agent().await;
    agent.call("a", "read", 20).await;
    agent.say(&json!({"op": "turn_end"})).await;
    agent.call("b", "read", 5).await;
    agent.call("c", "read", 10).await;
    assert_eq!(agent.shorts(2).await, ["a ok 20", "b ok 25"]);
    agent.call("b", "read", 1).await; // while c runs
    assert_eq!(agent.shorts(2).await, ["c ok 30", "b ok 31"]);
}

/// AG-3: a call with `after` waits for those alone, whether they succeed or fail, and nothing waits for it; a finished id
/// counts as done, an unknown one is `invalid_args`.
#[tokio::test(start_paused = true)]
async fn calls_may_name_what_they_wait_for() {
    let mut agent = agent().await;
    agent.call("w", "write", 30).await;
    agent
        .say(
            &json!({"op": "tool_call", "tool_call_id": "f", "tool": "read", "args": {"ms": 10, "fails": true},
        "after": []}),
        )
        .await;
    agent.call_after("both", "read", 5, &["w", "f"]).await;
    agent.call_after("one", "read", 5, &["f"]).await;
    agent.call("behind", "read", 1).await; // of the write
    agent.call_after("none", "read", 1, &["nobody"]).await;
    agent.call_after("self", "read", 1, &["self"]).await;
    assert_eq!(
        agent.shorts(7).await,
        [
            "none invalid_args 0",
            "self invalid_args 0",
            "f tool_failed 10",
            "one ok 15",
            "w ok 30",
            "behind ok 31",
            "both ok 35"
        ]
    );
    agent.call_after("done", "read", 1, &["w", "both"]).await;
    assert_eq!(agent.short().await, "done ok 36");
    agent.call_after("done", "read", 1, &["done"]).await; // itself, not the one before
    assert_eq!(agent.short().await, "done invalid_args 36");
}

/// AG-1, V6: what an agent may not do, in the five words.
#[tokio::test(start_paused = true)]
async fn refusals_have_five_words() {
    let mut agent = agent().await;
    agent.call("1", "nothing", 0).await;
    agent.call("2", "secret", 0).await;
    agent.say(&json!({"op": "tool_call", "tool_call_id": "3", "tool": "read", "args": {"ms": "x"}})).await;
    agent.say(&json!({"op": "tool_call", "tool_call_id": "4", "tool": "read", "args": null})).await;
    agent.say(&json!({"op": "tool_call", "tool_call_id": "5", "tool": "read", "args": {"ms": 0, "fails": true}})).await;
    let mut words = agent.shorts(5).await;
    words.sort();
    assert_eq!(
        words,
        [
            "1 tool_not_found 0",
            "2 permission_denied 0",
            "3 invalid_args 0",
            "4 invalid_args 0",
            "5 tool_failed 0"
        ]
    );
}

/// AG-2: what makes no sense is refused by name and does nothing; the agent goes on. An id in flight is not answered twice.
#[tokio::test(start_paused = true)]
async fn a_line_without_sense_is_refused() {
    let mut agent = agent().await;
    agent.call("a", "read", 10).await;
    agent.call("a", "read", 10).await;
    agent.to.write_all(b"no json\n\n{\"op\":\"sing\"}\n").await.unwrap();
    agent.say(&json!({"op": "cancel", "tool_call_id": "z"})).await;
    let errors = [agent.hear().await, agent.hear().await, agent.hear().await, agent.hear().await];
    let lines: Vec<_> = errors.iter().map(|error| error["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [2, 3, 5, 6]); // an empty line counts, and is no error
    assert_eq!((&errors[0]["refused"], &errors[0]["tool_call_id"]), (&json!("tool_call"), &json!("a")));
    assert_eq!((&errors[3]["refused"], &errors[3]["tool_call_id"]), (&json!("cancel"), &json!("z")));
    assert_eq!(agent.short().await, "a ok 10");
    agent.say(&json!({"op": "cancel", "tool_call_id": "a"})).await; // it has been answered: no error
    agent.call("b", "read", 1).await;
    assert_eq!(agent.short().await, "b ok 11");
}

/// AG-2: 100 refused lines in a row end an agent, and one that is understood begins the count anew.
#[tokio::test(start_paused = true)]
async fn an_agent_without_sense_is_given_up() {
    let mut agent = agent().await;
    for line in ["x\n".repeat(99), "{\"op\":\"turn_end\"}\n".to_owned(), "y\n".repeat(99)] {
        agent.to.write_all(line.as_bytes()).await.unwrap();
    }
    for _ in 0..198 {
        assert_eq!(agent.hear().await["op"], "error");
    }
    agent.to.write_all(b"y\n").await.unwrap();
    let why = agent.talk.await.unwrap().why;
    let TalkEnd::Protocol(why) = why else { panic!("{why:?}") };
    assert!(why.starts_with("100 lines in a row were refused; the first: line 101: "), "{why}");
}

/// AG-2: a call that runs, one that waits for its batch and one that waits for others can be cancelled; each is answered.
#[tokio::test(start_paused = true)]
async fn calls_can_be_cancelled() {
    let mut agent = agent().await;
    agent.say(&json!({"op": "hello", "protocol": 1, "meta": true})).await;
    agent.hear().await;
    agent.call("runs", "read", 1_000_000).await;
    agent.say(&json!({"op": "turn_end"})).await;
    agent.call("queued", "read", 1).await;
    agent.call_after("apart", "read", 1_000_000, &[]).await;
    agent.call_after("waits", "read", 1, &["runs"]).await;
    for id in ["queued", "waits", "apart", "runs"] {
        agent.say(&json!({"op": "cancel", "tool_call_id": id})).await;
        let answer = agent.hear().await;
        assert_eq!((&answer["tool_call_id"], &answer["error"]), (&json!(id), &json!("tool_failed")));
        assert_eq!(answer["meta"]["code"], "cancelled");
    }
    agent.call("after", "read", 0).await;
    assert!(agent.short().await.starts_with("after ok "));
}

/// AG-2: output comes before the end of its call to those that want it.
#[tokio::test(start_paused = true)]
async fn deltas_come_before_the_answer() {
    let mut agent = agent().await;
    agent.call("without", "read", 0).await;
    assert_eq!(agent.short().await, "without ok 0");
    agent.say(&json!({"op": "hello", "protocol": 1, "deltas": true})).await;
    agent.hear().await;
    agent.call("with", "read", 0).await;
    let expect = json!({"op": "tool_delta", "tool_call_id": "with", "text": "waiting"});
    assert_eq!(agent.hear().await, expect);
    assert_eq!(agent.short().await, "with ok 0");
}

/// AG-3: 1 000 calls may be sent before an answer is read, whatever the size of the answers, in one line or in many; the
/// next one waits, and a cancel before it is heard.
#[tokio::test(start_paused = true)]
async fn many_calls_may_be_sent_before_an_answer_is_read() {
    let mut agent = agent().await;
    let calls: Vec<_> = (0..CALLS_OPEN_MAX)
        .map(|n| json!({"tool_call_id": n.to_string(), "tool": "x".repeat(200), "args": {}}))
        .collect();
    for call in &calls {
        let mut line = call.clone();
        line["op"] = "tool_call".into();
        tokio::time::timeout(Duration::from_secs(1), agent.say(&line)).await.expect("nobody reads the calls");
    }
    for _ in 0..CALLS_OPEN_MAX {
        assert_eq!(agent.hear().await["error"], "tool_not_found");
    }
    agent.call("hangs", "read", 1_000_000).await;
    agent.say(&json!({"op": "tool_calls", "calls": calls})).await;
    let mut answered = 0;
    while answered < CALLS_OPEN_MAX {
        // They are not read: they follow a read, but are another run.
        agent.say(&json!({"op": "cancel", "tool_call_id": "hangs"})).await;
        agent.hear().await;
        answered += 1;
    }
}

/// AG-9: when an agent exits, its calls are cancelled; what it said last is still heard.
#[tokio::test(start_paused = true)]
async fn the_last_words_of_an_agent_are_heard() {
    let mut agent = agent().await;
    agent.call("runs", "read", 1_000_000).await;
    sleep(Duration::from_millis(1)).await;
    agent.say(&json!({"op": "bye", "result": "late"})).await;
    agent.orders.send_replace(Order::Exited);
    drop(agent.to);
    let talked = agent.talk.await.unwrap();
    assert_eq!(talked, Talked { why: TalkEnd::Over, result: Some(json!("late")) });
    assert!(agent.since.elapsed() < Duration::from_secs(5));
}

/// AG-8: an agent that is told to end hears it, its calls are cancelled and answered, later ones are answered as too late,
/// and its bye counts.
#[tokio::test(start_paused = true)]
async fn an_agent_can_be_told_to_end() {
    let mut agent = agent().await;
    agent.call("runs", "read", 1_000_000).await;
    agent.say(&json!({"op": "turn_end"})).await;
    agent.call("queued", "read", 1).await;
    sleep(Duration::from_millis(1)).await;
    agent.orders.send_replace(Order::Stop(Duration::from_secs(3)));
    assert_eq!(agent.hear().await, json!({"op": "shutdown", "grace_ms": 3000}));
    agent.call("late", "read", 1).await;
    agent.say(&json!({"op": "bye", "result": 1})).await;
    let mut heard: Vec<_> = (0..3).map(|_| String::new()).collect();
    for line in &mut heard {
        *line = agent.short().await;
    }
    heard.sort();
    let ids: Vec<_> = heard.iter().map(|line| line.rsplit_once(' ').unwrap().0).collect();
    assert_eq!(ids, ["late tool_failed", "queued tool_failed", "runs tool_failed"]);
    assert_eq!(agent.ends().await.result, Some(json!(1)));
}

/// AG-8: an agent that waits for nothing when it is told to end may still say bye.
#[tokio::test(start_paused = true)]
async fn an_idle_agent_may_say_bye_when_it_is_told_to_end() {
    let mut agent = agent().await;
    agent.orders.send_replace(Order::Stop(Duration::from_secs(3)));
    assert_eq!(agent.hear().await["op"], "shutdown");
    let mut rest = String::new();
    agent.from.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "");
    agent.say(&json!({"op": "bye", "result": "late"})).await;
    agent.say(&json!({"op": "bye"})).await; // the last one counts
    agent.say(&json!({"op": "bye", "result": "later"})).await;
    assert_eq!(agent.ends().await.result, Some(json!("later")));
}

/// AG-13: arguments that no call may have are not kept, and what calls wait with is bounded.
#[tokio::test(start_paused = true)]
async fn arguments_of_waiting_calls_are_bounded() {
    let mut agent = agent().await;
    let text = |size| "x".repeat(size);
    agent
        .say(&json!({"op": "tool_call", "tool_call_id": "a", "tool": "read", "args": text(ARGUMENTS_MAX)}))
        .await;
    assert_eq!(agent.short().await, "a invalid_args 0");
    agent.call("runs", "read", 60_000).await;
    agent.say(&json!({"op": "turn_end"})).await;
    let flood = async {
        for n in 0.. {
            let id = n.to_string();
            agent
                .say(&json!({"op": "tool_call", "tool_call_id": id, "tool": "read", "args": text(250_000)}))
                .await;
            if n > 60 {
                panic!("all of it is kept");
            }
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(1), flood).await.is_err());
}

/// CC-4, AG-13: an agent that reads its answers may go on for ever, whatever it has read and whatever hangs.
#[tokio::test(start_paused = true)]
async fn what_was_read_takes_no_room() {
    let mut agent = agent().await;
    agent.call("hangs", "read", 1_000_000_000).await;
    for n in 0..400 {
        let id = n.to_string();
        agent.say(&json!({"op": "tool_call", "tool_call_id": id, "tool": "large", "args": {"ms": 0}})).await;
        assert_eq!(agent.hear().await["ok"], true, "{n}");
    }
}

/// AG-3: a cancel is heard behind calls that wait for room, of one in flight and of one that waits; what else is behind them
/// is done in its order.
#[tokio::test(start_paused = true)]
async fn a_cancel_is_heard_behind_calls_that_wait_for_room() {
    let mut agent = agent().await;
    let pad = "x".repeat(250 << 10);
    let call = |id: &str, pad: &str| {
        let args = json!({"ms": 1_000_000_000_u64, "pad": pad});
        json!({"op": "tool_call", "tool_call_id": id, "tool": "read", "args": args})
    };
    for n in 0..34 {
        agent.say(&call(&n.to_string(), &pad)).await;
    }
    for id in ["waits", "waits too"] {
        agent.say(&call(id, "")).await;
    }
    agent.say(&json!({"op": "hello", "protocol": 1})).await;
    agent.say(&json!({"op": "cancel", "tool_call_id": "waits"})).await;
    assert_eq!(agent.short().await, "waits tool_failed 0");
    agent.say(&json!({"op": "cancel", "tool_call_id": "0"})).await;
    assert!(agent.short().await.starts_with("0 tool_failed "));
    for n in 1..33 {
        agent.say(&json!({"op": "cancel", "tool_call_id": n.to_string()})).await;
    }
    let mut heard = Vec::new();
    while heard.last().is_none_or(|last| *last != "welcome") {
        heard.push(agent.hear().await["op"].as_str().unwrap().to_owned());
    }
    assert!(heard.len() > 1, "the welcome is behind the calls: {heard:?}");
}

/// AG-3: little is read ahead of a call that waits for room.
#[tokio::test(start_paused = true)]
async fn little_is_read_ahead() {
    let mut agent = agent().await;
    for n in 0..CALLS_OPEN_MAX {
        agent.call(&n.to_string(), "write", 1_000_000_000).await;
    }
    let flood = async {
        for n in CALLS_OPEN_MAX.. {
            agent.call(&n.to_string(), "write", 1).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(1), flood).await.is_err());
    assert!(!agent.talk.is_finished());
}

/// AG-13: an agent that does not read is held back, and its calls hold no one up.
#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_read_waits_by_itself() {
    let mut agent = agent().await;
    let flood = async {
        loop {
            agent.to.write_all(b"x\n{\"op\":\"turn_end\"}\n").await.unwrap();
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(1), flood).await.is_err());
    assert!(!agent.talk.is_finished());
    // Read on, and it goes on.
    assert_eq!(agent.hear().await["op"], "error");
}
