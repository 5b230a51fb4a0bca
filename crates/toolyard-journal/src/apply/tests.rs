use super::*;
use crate::{
    op::{CancelOp, EndOp, Ending, Facts, Status},
    schema,
};
use std::time::Duration;
use toolyard::{AgentPath, Dedupe, Routing, Sandbox};

/// Tables, and a writer's memory of them.
struct Book {
    db: Connection,
    ids: Ids,
    now: i64,
}

impl Book {
    fn new() -> Self {
        let mut db = Connection::open_in_memory().expect("it takes no file");
        schema::create(&mut db).expect("it is new");
        let epoch = "INSERT INTO epoch_rows (id, pid, durability, started_ms) VALUES (1, 1, 'full', 0)";
        db.execute(epoch, []).expect("the tables are there");
        crate::epoch::note_unsure(&db).expect("it is there for as long as the connection");
        Self { db, ids: Ids::default(), now: 0 }
    }

    fn apply(&mut self, op: &Op) -> Result<(), String> {
        self.now += 1;
        let mut tables = Tables::new(&self.db, EpochId(1), &mut self.ids);
        tables.at(self.now);
        tables.apply(op).map_err(|fault| match fault {
            Fault::Refused(why) => why,
            Fault::Sql(error) => panic!("{error}"),
        })
    }

    fn open_session(&mut self, name: &str) {
        let op = Op::Session { session: name.into(), is_named: true, terms: "{}".to_owned() };
        self.apply(&op).expect("a session can always be opened");
    }

    /// A batch of root with calls of these ids.
    fn batch(&mut self, turn: u64, batch: u64, calls: &[&str]) {
        self.batch_of("root", turn, batch, calls);
    }

    fn batch_of(&mut self, agent: &str, turn: u64, batch: u64, calls: &[&str]) {
        self.batch_that(agent, turn, batch, calls, false);
    }

    fn batch_that(&mut self, agent: &str, turn: u64, batch: u64, calls: &[&str], is_open: bool) {
        let calls = calls.iter().map(|id| Call::new(*id, "save", "{}")).collect();
        let op = BatchOp {
            session: "demo".into(),
            agent: AgentPath::from(agent),
            turn,
            batch,
            request: None,
            parent: None,
            calls,
            is_open,
            is_sequential: false,
            is_resend: false,
        };
        self.apply(&Op::Batch(Box::new(op))).expect("its session is there");
    }

    fn cancel(&mut self, agent: &str, what: CancelOp) {
        let op = Op::Cancelled { session: "demo".into(), agent: AgentPath::from(agent), what };
        self.apply(&op).expect("its session is there");
    }

    /// The calls that the view says are cancelled.
    fn cancelled(&self) -> Vec<String> {
        self.texts("SELECT call_id FROM calls WHERE is_cancelled ORDER BY call_id")
    }

    fn ids_of(&self, what: &str) -> Vec<String> {
        let sql = format!("SELECT call_id || '@' || batch FROM call_rows WHERE {what} ORDER BY id");
        self.texts(&sql)
    }

    fn texts(&self, sql: &str) -> Vec<String> {
        let mut found = self.db.prepare(sql).expect("the tables are there");
        let rows = found.query_map([], |row| row.get(0)).expect("the tables are there");
        rows.collect::<Result<_, _>>().expect("they are texts")
    }
}

fn place(turn: u64, batch: u64, index: u32, id: &str) -> Place {
    let (session, agent) = (SessionId::from("demo"), AgentPath::root());
    Place { session, batch, index, agent, turn, call_id: id.into() }
}

fn end(call: Place) -> Op {
    Op::Ended(Box::new(EndOp {
        call,
        status: Status { text: "{}".to_owned(), code: None },
        dedupe: Dedupe::Fresh,
        attempts: 1,
        sandbox: Sandbox::Host,
        ending: Ending::new(Routing::Serial, 0, false, Duration::ZERO, Duration::ZERO),
        was_waited_for: true,
    }))
}

fn attempt(call: Place) -> Op {
    Op::Attempt(Box::new(AttemptOp {
        call,
        attempt: 1,
        version: "1".to_owned(),
        side_effects: "write",
        arguments: None,
        approval: None,
        digest: None,
        timeout_ms: 1,
        key: None,
        facts: Facts { is_repeatable: false, is_recursive: false, cost: None, sandbox: Sandbox::Host },
    }))
}

/// JR-2: the arguments of an attempt are written if they are not those that its call came with; one that is recorded already
/// is refused.
#[test]
fn an_attempt_has_arguments_of_its_own_or_none() {
    let mut book = Book::new();
    book.open_session("demo");
    book.batch(1, 1, &["call_a"]);
    let mut numbered = |number: u32, given: Option<&str>| {
        let Op::Attempt(mut op) = attempt(place(1, 1, 0, "call_a")) else { unreachable!("it is one") };
        (op.attempt, op.arguments) = (number, given.map(str::to_owned));
        book.apply(&Op::Attempt(op))
    };
    for (number, given) in (1..).zip([None, Some("{}"), Some("{\"n\":1}")]) {
        numbered(number, given).expect("its call is there");
    }
    let refused = numbered(3, None).expect_err("it is there already");
    assert!(refused.contains("is complete"), "{refused}");
    assert_eq!(
        book.texts("SELECT number || coalesce(arguments, ' as sent') FROM attempt_rows ORDER BY number"),
        ["1 as sent", "2 as sent", "3{\"n\":1}"]
    );
    let refused = book.apply(&attempt(place(1, 1, 0, "call_b"))).expect_err("there is no such call");
    assert!(refused.contains("is not in the journal"), "{refused}");
}

/// JR-1: records of a session that was opened again go with its own batches, and those of the last one's calls with
/// theirs, although the numbers are the same.
#[test]
fn a_session_that_is_opened_again_has_its_own_batches() {
    let mut book = Book::new();
    book.open_session("demo");
    book.batch(1, 1, &["call_a", "call_b"]);
    book.batch(2, 2, &["call_c"]);
    book.open_session("demo");
    book.apply(&attempt(place(1, 1, 0, "call_a"))).expect("the last session has it");
    book.batch(1, 1, &["call_x", "call_y"]);
    for (batch, index, id) in [(1, 0, "call_x"), (1, 0, "call_a"), (2, 0, "call_c")] {
        book.apply(&end(place(batch, batch, index, id))).expect("one of them has it");
    }
    assert_eq!(book.ids_of("ended_ms IS NOT NULL"), ["call_a@1", "call_c@2", "call_x@3"]);
    assert_eq!(book.ids_of("id IN (SELECT call FROM attempt_rows)"), ["call_a@1"]);
    book.batch(2, 2, &["call_z"]);
    book.apply(&end(place(2, 2, 0, "call_z"))).expect("the new session has it");
    assert_eq!(book.ids_of("ended_ms IS NULL"), ["call_b@1", "call_y@3"]);
}

/// JR-1, JR-8: calls of an open batch that follow some which could not be recorded are refused too, so that each is at its
/// place; the batch has those that are there.
#[test]
fn a_batch_has_no_holes() {
    let mut book = Book::new();
    book.open_session("demo");
    book.batch_that("root", 1, 1, &[], true);
    let mut push = |index, id: &str| {
        let to = OpenBatch { session: "demo".into(), agent: AgentPath::from("root"), turn: 1, batch: 1 };
        book.apply(&Op::Pushed { to, index, calls: vec![Call::new(id, "save", "{}")] })
    };
    push(0, "call_a").expect("it is the first");
    push(2, "call_c").expect_err("call_b is not there");
    push(0, "call_a").expect_err("it is there");
    push(1, "call_b").expect("it is the next");
    let batch = OpenBatch { session: "demo".into(), agent: AgentPath::from("root"), turn: 1, batch: 1 };
    book.apply(&Op::Closed { batch, calls: 3, request: None }).expect("it takes calls");
    assert_eq!(book.ids_of("1"), ["call_a@1", "call_b@1"]);
    assert_eq!(book.texts("SELECT CAST(calls AS TEXT) FROM batch_rows"), ["2"]);
}

/// JR-1: calls that are pushed go with the batch that still takes calls, also if a session of the same name has one of the
/// same number; and with none that has all its calls.
#[test]
fn pushed_calls_go_with_an_open_batch() {
    let mut book = Book::new();
    let open = |turn| {
        let (session, agent) = (SessionId::from("demo"), AgentPath::root());
        OpenBatch { session, agent, turn, batch: 1 }
    };
    let push =
        |turn, id: &str| Op::Pushed { to: open(turn), index: 0, calls: vec![Call::new(id, "save", "{}")] };
    book.open_session("demo");
    book.batch_that("root", 1, 1, &[], true);
    book.open_session("demo");
    book.batch_that("root", 2, 1, &["call_b"], false);
    book.apply(&push(1, "call_a")).expect("it takes calls");
    assert_eq!(book.ids_of("true"), ["call_a@1", "call_b@2"]);
    book.apply(&push(2, "call_c")).expect_err("it has all its calls");
    book.apply(&Op::Closed { batch: open(1), calls: 1, request: None }).expect("it is open");
    for op in [push(1, "call_d"), Op::Closed { batch: open(1), calls: 2, request: None }, push(3, "call_e")] {
        let refused = book.apply(&op).expect_err("none of them takes calls");
        assert!(refused.contains("has all its calls"), "{refused}");
    }
}

/// JR-1: a record whose call is not at its place is refused, and changes nothing; so is a second end.
#[test]
fn a_record_of_another_call_is_refused() {
    let mut book = Book::new();
    book.open_session("demo");
    book.batch(1, 1, &["call_a"]);
    let other = || place(1, 1, 0, "call_b");
    for op in [attempt(other()), end(other()), end(place(1, 1, 1, "call_a")), end(place(1, 9, 0, "call_a"))] {
        let refused = book.apply(&op).expect_err("no call is there");
        assert!(refused.contains("is not in the journal"), "{refused}");
    }
    assert_eq!(book.ids_of("ended_ms IS NOT NULL OR id IN (SELECT call FROM attempt_rows)"), [""; 0]);
    book.apply(&end(place(1, 1, 0, "call_a"))).expect("it is there");
    book.apply(&end(place(1, 1, 0, "call_a"))).expect_err("it has ended");
}

/// Batches 1 to 4 of four agents, two calls each, of which the second of the root's has ended.
fn four_agents() -> Book {
    let mut book = Book::new();
    book.open_session("demo");
    book.batch_of("root", 1, 1, &["r1", "r2"]);
    book.batch_of("root/1", 2, 2, &["s1", "s2"]);
    book.batch_of("root/1/a", 3, 3, &["t1", "t2"]);
    book.batch_of("root/12", 4, 4, &["u1", "r1"]);
    book.apply(&end(place(1, 1, 1, "r2"))).expect("it is there");
    book
}

/// JR-1: a cancel of what is in flight is of the open calls that came before it, of the agent and of its descendants, and
/// of no others; so is one that names an id, a place or a batch.
#[test]
fn a_cancel_marks_the_open_calls_that_it_reaches() {
    let reached = |agent: &str, what: CancelOp| {
        let mut book = four_agents();
        book.cancel(agent, what);
        book.batch_of("root/1/a", 5, 5, &["later"]);
        book.cancelled()
    };
    assert_eq!(reached("root", CancelOp::InFlight), ["r1", "r1", "s1", "s2", "t1", "t2", "u1"]);
    assert_eq!(reached("root/1", CancelOp::InFlight), ["s1", "s2", "t1", "t2"]);
    assert_eq!(reached("root", CancelOp::Calls { turn: None, id: "r1".to_owned() }), ["r1", "r1"]);
    assert_eq!(reached("root", CancelOp::Calls { turn: Some(4), id: "r1".to_owned() }), ["r1"]);
    assert_eq!(reached("root/1", CancelOp::Calls { turn: None, id: "r1".to_owned() }), [""; 0]);
    assert_eq!(reached("root/1", CancelOp::Call { turn: 2, batch: 2, index: 1 }), ["s2"]);
    assert_eq!(reached("root/12", CancelOp::Batch(4)), ["r1", "u1"]);
    // These hold for what comes later too.
    assert_eq!(reached("root/1", CancelOp::Session), ["later", "s1", "s2", "t1", "t2"]);
    assert_eq!(reached("root", CancelOp::Turn(5)), ["later"]);
    assert_eq!(reached("root", CancelOp::Turn(1)), ["r1"]);
}

/// JR-1: what had ended when it was cancelled is not cancelled, and what was cancelled and ends still was.
#[test]
fn an_end_and_a_cancel_keep_their_order() {
    let mut book = four_agents();
    book.cancel("root", CancelOp::Session);
    book.apply(&end(place(1, 1, 0, "r1"))).expect("it is there");
    assert_eq!(book.cancelled(), ["r1", "r1", "s1", "s2", "t1", "t2", "u1"]);
    // The calls of another session of the same name are its own.
    book.open_session("demo");
    book.batch_of("root", 1, 1, &["x1"]);
    book.cancel("root", CancelOp::InFlight);
    book.batch_of("root", 2, 2, &["x2"]);
    assert_eq!(book.cancelled(), ["r1", "r1", "s1", "s2", "t1", "t2", "u1", "x1"]);
}

/// JR-2: batches are put into the list of their session's many at a time, and records find them before and after, also when what
/// the writer remembers is gone.
#[test]
fn batches_are_listed_many_at_a_time() {
    let mut book = Book::new();
    book.open_session("demo");
    let until = |book: &Book| book.texts("SELECT CAST(batch AS TEXT) FROM listed_until");
    let each = u64::from(crate::listing::LISTED_EACH);
    for batch in 1..each {
        book.batch(batch, batch, &["call"]);
    }
    assert_eq!(until(&book), ["0"]);
    book.batch(each, each, &["call"]);
    assert_eq!(until(&book), [each.to_string()]);
    book.batch(each + 1, each + 1, &["call"]);
    assert_eq!(until(&book), [each.to_string()]);
    book.ids.clear();
    for batch in [1, each, each + 1] {
        book.apply(&end(place(batch, batch, 0, "call"))).expect("it is there");
    }
}

/// JR-2: what a transaction that is rolled back has listed is not, with its batches, and is listed once they are written.
#[test]
fn a_list_is_rolled_back_with_its_batches() {
    let mut book = Book::new();
    book.open_session("demo");
    let each = u64::from(crate::listing::LISTED_EACH);
    for is_written in [false, true] {
        book.ids.begin();
        book.db.execute_batch("BEGIN").expect("it can begin");
        for batch in 1..=each + 5 {
            book.batch(batch, batch, &[]);
        }
        match is_written {
            true => book.db.execute_batch("COMMIT"),
            false => book.db.execute_batch("ROLLBACK"),
        }
        .expect("it is open");
        if !is_written {
            book.ids.clear();
        }
        let count = |from: &str| book.texts(&format!("SELECT CAST(count(*) AS TEXT) FROM ({from})"));
        let listed = if is_written { each } else { 0 };
        assert_eq!(count("SELECT 1 FROM listed_rows"), [listed.to_string()]);
        for wrong in [crate::listing::LACKS, crate::listing::STALE, crate::listing::UNKEPT] {
            assert_eq!(count(wrong), ["0"]);
        }
        let expected = if is_written { each + 5 } else { 0 };
        assert_eq!(count(&crate::listing::of_name("'demo'")), [expected.to_string()]);
    }
}
