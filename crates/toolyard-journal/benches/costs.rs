//! What a journal costs, beside what it cannot cost less than, in one run:
//!
//! - reads: the processor time of the thread that makes the calls, with a journal and without, beside the floor F; and that
//!   of the writer;
//! - writes: the time of calls that change something, 64 at once, with a journal and without, beside a bare program that
//!   writes the same rows with the same library in groups of 64; and the processor time of both threads.
//!
//! `cargo bench -p toolyard-journal --features bundled`; Linux. With `-- reads`, `process` or `full` only that, with a
//! number so many rounds: what counts instructions needs one.

#[cfg(target_os = "linux")]
mod linux {
    use rusqlite::{Connection, params};
    use rustix::time::{ClockId, clock_gettime};
    use serde_json::{Value, json};
    use std::{hint::black_box, path::Path, time::Duration};
    use tokio::{
        runtime::{Builder, Runtime},
        task::JoinSet,
    };
    use toolyard::{Batch, Call, Confirmations, Engine, ToolContext, ToolSpec, tool_fn};
    use toolyard_bench::{Contender as _, Floor, Handler};
    use toolyard_journal::{Durability, Journal, Settings};

    /// Calls in a batch of reads.
    const READS: usize = 40;
    /// Batches in a sample.
    const BATCHES: usize = 250;
    /// Writes at once.
    const AT_ONCE: usize = 64;
    /// Rounds of all contenders, one after the other.
    pub(super) const ROUNDS: usize = 15;

    fn now(clock: ClockId) -> Duration {
        let now = clock_gettime(clock);
        Duration::new(now.tv_sec.cast_unsigned(), u32::try_from(now.tv_nsec).unwrap_or_default())
    }

    /// The time of a clock that passes meanwhile.
    fn passes<T>(clock: ClockId, work: impl FnOnce() -> T) -> Duration {
        let begin = now(clock);
        black_box(work());
        now(clock).saturating_sub(begin)
    }

    fn median(mut all: Vec<f64>) -> f64 {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    }

    fn range(all: &[f64]) -> String {
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        let most = all.iter().copied().fold(0.0, f64::max);
        format!("{least:.2} to {most:.2}")
    }

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_all().build().expect("a runtime can be made")
    }

    async fn engine(journal: Option<&Journal>) -> Engine {
        let read = tool_fn(ToolSpec::read("read"), |_: Value, _: ToolContext| async { Ok("") });
        let write = tool_fn(
            ToolSpec::write("write").concurrent().max_concurrency(AT_ONCE),
            |_: Value, _: ToolContext| async { Ok("") },
        );
        let mut builder = Engine::builder().tool(read).tool(write).confirmations(Confirmations::auto());
        builder = builder.pools(toolyard::PoolWidths::new(20, AT_ONCE));
        if let Some(journal) = journal {
            builder = builder.recorder(journal.clone());
        }
        builder.build().await.expect("the engine can be built")
    }

    fn arguments(at: usize) -> Value {
        json!({"n": at})
    }

    fn reads() -> Batch {
        (0..READS).map(|at| Call::new(format!("call_{at}"), "read", arguments(at))).collect()
    }

    /// Nanoseconds of the calling thread for each read.
    fn of_reads(runtime: &Runtime, engine: Option<&Engine>) -> f64 {
        let took = passes(ClockId::ThreadCPUTime, || {
            runtime.block_on(async {
                match engine {
                    None => Floor::of(Handler::Ready).work(READS, BATCHES).await,
                    Some(engine) => {
                        for _ in 0..BATCHES {
                            black_box(engine.session("bench").dispatch(reads()).await);
                        }
                    }
                }
            });
        });
        took.as_nanos() as f64 / (BATCHES * READS) as f64
    }

    pub(super) fn reads_cost(directory: &Path, rounds: usize) {
        let settings = Settings::default().durability(Durability::Process);
        let journal = Journal::open(directory.join("reads"), settings).expect("the journal can be opened");
        let runtime = runtime();
        let (bare, journalled) =
            runtime.block_on(async { (engine(None).await, engine(Some(&journal)).await) });
        // They stay open, as in a program: else each batch opens its session anew.
        let _sessions = [bare.session("bench"), journalled.session("bench")];
        let (mut without, mut with, mut writers) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let least = of_reads(&runtime, None);
            without.push(of_reads(&runtime, Some(&bare)) / least);
            let mut on_caller = 0.0;
            let process = passes(ClockId::ProcessCPUTime, || {
                on_caller = of_reads(&runtime, Some(&journalled));
                runtime
                    .block_on(async { journalled.session("bench").recorded().await })
                    .expect("it is written");
            });
            with.push(on_caller / least);
            writers.push((process.as_nanos() as f64 / (BATCHES * READS) as f64 - on_caller) / least);
        }
        let lost = journal.status().lost;
        println!("reads, {READS} in a batch, as multiples of F in the same round (processor time):");
        println!("  without a journal                  {:.2} ({})", median(without.clone()), range(&without));
        println!(
            "  with one, on the callers' thread   {:.2} ({})  goal 2",
            median(with.clone()),
            range(&with)
        );
        println!("  the writer's thread                {:.2} ({})", median(writers.clone()), range(&writers));
        println!("  records left out for want of room  {lost}");
    }

    /// Writes the rows of so many groups of calls with nothing around.
    fn bare_commits(db: &Connection, groups: usize) {
        for group in 0..groups {
            db.execute_batch("BEGIN IMMEDIATE").expect("it can begin");
            for at in 0..AT_ONCE {
                let row = (group * AT_ONCE + at) as i64;
                let args = arguments(at).to_string();
                let mut batch = db.prepare_cached("INSERT INTO b (session, agent, turn, number, calls, at) VALUES (?1, 'root', ?2, ?2, 1, 0)").expect("sql");
                batch.execute([at as i64, row]).expect("a row");
                let batch = db.last_insert_rowid();
                let mut call = db.prepare_cached("INSERT INTO c (id, batch, place, call_id, tool, arguments, is_text, at) VALUES (?1, ?2, 0, 'call_0', 'write', ?3, 0, 0)").expect("sql");
                call.execute(params![batch << 24, batch, args]).expect("a row");
                let mut attempt = db.prepare_cached("INSERT INTO a (call, number, version, effects, arguments, timeout, facts, at) VALUES (?1, 1, '1', 'write', NULL, 30000, ?2, 0)").expect("sql");
                attempt
                    .execute(params![
                        batch << 24,
                        "{\"is_repeatable\":false,\"is_recursive\":false,\"cost\":null,\"sandbox\":\"host\"}"
                    ])
                    .expect("a row");
            }
            db.execute_batch("COMMIT; BEGIN IMMEDIATE").expect("it can commit");
            for at in 0..AT_ONCE {
                let row = ((group * AT_ONCE + at) as i64 + 1) << 24;
                let mut end = db.prepare_cached("UPDATE c SET ended = 1, status = ?2, ending = ?3, dedupe = 'fresh', attempts = 1, sandbox = 'host', waited = 1 WHERE id = ?1").expect("sql");
                end.execute(params![row, "{\"success\":true,\"content\":[]}", "{\"routing\":\"concurrent\",\"run\":0,\"cancel_requested\":false,\"queued_us\":0,\"ran_us\":0}"]).expect("a row");
            }
            db.execute_batch("COMMIT").expect("it can commit");
        }
    }

    fn bare_file(file: &Path, durability: Durability) -> Connection {
        let db = Connection::open(file).expect("the file can be opened");
        let synchronous = if durability == Durability::Full { "FULL" } else { "NORMAL" };
        db.execute_batch(&format!(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous};
             CREATE TABLE b (id INTEGER PRIMARY KEY AUTOINCREMENT, session, agent, turn, number, request, parent, calls, at);
             CREATE INDEX b1 ON b (session, turn, number);
             CREATE TABLE c (id INTEGER PRIMARY KEY, batch, place, call_id, tool, arguments, is_text, key, more, at, ended,
                 status, code, ending, dedupe, attempts, sandbox, waited);
             CREATE INDEX c1 ON c (batch); CREATE INDEX c2 ON c (id) WHERE ended IS NULL;
             CREATE TABLE a (call, number, version, effects, arguments, timeout, facts, at, ended, status, PRIMARY KEY (call, number));"
        ))
        .expect("the tables can be made");
        db
    }

    /// Makes so many writes, one after the other in each of 64 sessions.
    async fn writes(engine: &Engine, each: usize) {
        let mut agents = JoinSet::new();
        for agent in 0..AT_ONCE {
            let session = engine.session(format!("agent-{agent}"));
            agents.spawn(async move {
                for number in 0..each {
                    let call = Call::new(format!("call_{number}"), "write", arguments(agent));
                    assert!(session.call(call).await.success());
                }
                session
            });
        }
        while agents.join_next().await.is_some() {}
    }

    pub(super) fn writes_cost(directory: &Path, durability: Durability, rounds: usize) {
        let each = if durability == Durability::Full { 12 } else { 60 };
        let name = format!("{durability:?}");
        let db = bare_file(&directory.join(format!("bare-{name}")), durability);
        let settings = Settings::default().durability(durability);
        let journal = Journal::open(directory.join(&name), settings).expect("the journal can be opened");
        let runtime = runtime();
        let (bare, journalled) =
            runtime.block_on(async { (engine(None).await, engine(Some(&journal)).await) });
        let open = |engine: &Engine| -> Vec<_> {
            (0..AT_ONCE).map(|agent| engine.session(format!("agent-{agent}"))).collect()
        };
        let _open = [open(&bare), open(&journalled)];
        let mut rows = Writes::default();
        let before = journal.status().commits;
        for _ in 0..rounds {
            rows.round(&runtime, || bare_commits(&db, each), [&bare, &journalled], each);
        }
        let commits = journal.status().commits - before;
        let in_a_commit = (rounds * each * AT_ONCE) as f64 / commits as f64;
        println!(
            "writes, {AT_ONCE} at once, {name}, as multiples of a bare group commit of the same rows (time):"
        );
        rows.print();
        println!(
            "  calls in a commit             {in_a_commit:.1}{}",
            if name == "Full" { "  goal 16" } else { "" }
        );
    }

    /// What writes cost, as multiples of the bare commits of the same round.
    #[derive(Default)]
    struct Writes {
        bare: Vec<f64>,
        without: Vec<f64>,
        with: Vec<f64>,
        callers: Vec<f64>,
        writers: Vec<f64>,
    }

    impl Writes {
        fn round(&mut self, runtime: &Runtime, bare: impl FnOnce(), engines: [&Engine; 2], each: usize) {
            let mut processor = Duration::ZERO;
            let least = passes(ClockId::Monotonic, || {
                processor = passes(ClockId::ThreadCPUTime, bare);
            })
            .as_secs_f64();
            self.bare.push(processor.as_secs_f64() / least);
            let [without, with] = engines.map(|engine| {
                let [mut time, mut caller] = [Duration::ZERO; 2];
                let process = passes(ClockId::ProcessCPUTime, || {
                    time = passes(ClockId::Monotonic, || {
                        caller = passes(ClockId::ThreadCPUTime, || runtime.block_on(writes(engine, each)));
                    });
                });
                [time, caller, process.saturating_sub(caller)].map(|it| it.as_secs_f64() / least)
            });
            self.without.push(without[0]);
            self.with.push(with[0]);
            self.callers.push(with[1]);
            self.writers.push(with[2]);
        }

        fn print(&self) {
            let row = |what: &str, all: &[f64], goal: &str| {
                println!("  {what:<30}{:.2} ({}){goal}", median(all.to_vec()), range(all));
            };
            row("the bare commits, processor", &self.bare, "");
            row("without a journal", &self.without, "");
            row("with a journal", &self.with, "  goal 1.5");
            row("its callers' thread, processor", &self.callers, "");
            row("its writer's thread, processor", &self.writers, "");
        }
    }
}

fn main() {
    #[cfg(target_os = "linux")]
    {
        let directory = std::env::var_os("TOOLYARD_BENCH_DIR").map(std::path::PathBuf::from);
        let own = tempfile::tempdir().expect("a directory can be made");
        let directory = directory.as_deref().unwrap_or(own.path());
        let (numbers, parts): (Vec<_>, Vec<_>) = std::env::args()
            .skip(1)
            .filter(|word| !word.starts_with("--"))
            .partition(|word| word.parse::<usize>().is_ok());
        let rounds = numbers.first().and_then(|word| word.parse().ok()).unwrap_or(linux::ROUNDS);
        let is_asked = |part: &str| parts.is_empty() || parts.iter().any(|it| it == part);
        if is_asked("reads") {
            linux::reads_cost(directory, rounds);
        }
        for durability in [toolyard_journal::Durability::Process, toolyard_journal::Durability::Full] {
            if is_asked(durability.as_str()) {
                linux::writes_cost(directory, durability, rounds);
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    println!("this bench reads clocks of Linux");
}
