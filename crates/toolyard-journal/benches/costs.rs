//! What a journal costs, beside what it cannot cost less than, in one run:
//!
//! - reads: the processor time of the thread that makes the calls, with a journal and without, beside the floor F, with
//!   inputs that were made before, as in the engine's own measurements; and that of the writer;
//! - writes: the time of calls that change something, 64 at once, with a journal and without, beside a bare program that
//!   writes the same rows into the same tables with the same library in groups of 64; and the processor time of both threads.
//!   The bare program has an index by which the rows of a session are found, where a journal lists them many at a time. Two
//!   others are beside it: one without any such index, which finds nothing again, and one whose tables are leaner, with that
//!   index but few of the others, of the references and times that a journal has. All of them are measured once SQLite's log
//!   is used again from its start, as in a program that has run for a while. Those who call and the writer are two threads,
//!   and what one has written the other reads: how far apart the cores are is measured before and after.
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
    use toolyard::{Call, Confirmations, Durable, Engine, Recorder as _, ToolContext, ToolSpec, tool_fn};
    use toolyard_bench::{Contender, Floor, Handler, Yard, cores::round_trip_ns, spec};
    use toolyard_journal::{Durability, Journal, Settings};

    /// Calls in a batch of reads.
    const READS: usize = 40;
    /// Batches in a sample.
    const BATCHES: usize = 50;
    /// Writes at once.
    const AT_ONCE: usize = 64;
    /// Rounds of all contenders, one after the other; those of reads are shorter, and so many more.
    pub(super) const ROUNDS: usize = 15;
    const OF_READS: usize = 5;

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

    /// The lower quartile, as the engine's own measurements have it.
    fn quarter(mut all: Vec<f64>) -> f64 {
        all.sort_by(f64::total_cmp);
        all[all.len() / 4]
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
        let write = tool_fn(
            ToolSpec::write("write").concurrent().max_concurrency(AT_ONCE),
            |_: Value, _: ToolContext| async { Ok("") },
        );
        let mut builder = Engine::builder().tool(write).confirmations(Confirmations::auto());
        builder = builder.pools(toolyard::PoolWidths::new(20, AT_ONCE));
        if let Some(journal) = journal {
            builder = builder.recorder(journal.clone());
        }
        builder.build().await.expect("the engine can be built")
    }

    fn arguments(at: usize) -> Value {
        json!({"n": at})
    }

    /// Nanoseconds of the calling thread for each read.
    fn of_reads(runtime: &Runtime, contender: &dyn Contender) -> f64 {
        let work = contender.work(READS, BATCHES);
        let took = passes(ClockId::ThreadCPUTime, || runtime.block_on(work));
        took.as_nanos() as f64 / (BATCHES * READS) as f64
    }

    async fn flushed(journal: &Journal) {
        if let Durable::When(written) = journal.flush() {
            written.await.expect("it can be written");
        }
    }

    pub(super) fn reads_cost(directory: &Path, rounds: usize) {
        let settings = Settings::default().durability(Durability::Process);
        let journal = Journal::open(directory.join("reads"), settings).expect("the journal can be opened");
        let runtime = runtime();
        let yard = |name, builder| {
            let yard = Yard::new(name, builder, spec("read"), Handler::Ready);
            runtime.block_on(yard).expect("the engine can be built")
        };
        let floor = Floor::of(Handler::Ready);
        let bare = yard("without", Engine::builder());
        let journalled = yard("with", Engine::builder().recorder(journal.clone()));
        let [mut least, mut without, mut with, mut writers] = [const { Vec::new() }; 4];
        for _ in 0..rounds * OF_READS {
            least.push(of_reads(&runtime, &*floor));
            without.push(of_reads(&runtime, &bare));
            let mut caller = Duration::ZERO;
            let process = passes(ClockId::ProcessCPUTime, || {
                caller = passes(ClockId::ThreadCPUTime, || {
                    with.push(of_reads(&runtime, &journalled));
                    runtime.block_on(flushed(&journal));
                });
            });
            writers.push(process.saturating_sub(caller).as_nanos() as f64 / (BATCHES * READS) as f64);
        }
        let lost = journal.status().lost;
        println!("reads, {READS} in a batch, as multiples of F (processor time):");
        let row = |what: &str, all: &[f64], goal: &str| {
            let rounds: Vec<_> = all.iter().zip(&least).map(|(it, least)| it / least).collect();
            let quarter = quarter(all.to_vec()) / quarter(least.clone());
            println!("  {what:<35}{quarter:.2} (median of rounds {:.2}){goal}", median(rounds));
        };
        row("without a journal", &without, "");
        row("with one, on the callers' thread", &with, "  goal 2");
        row("the writer's thread", &writers, "");
        println!("  records left out for want of room  {lost}");
    }

    /// The settings of an attempt, an output and the rest of an end, as a journal has them.
    const FACTS: &str = r#"{"is_repeatable":false,"is_recursive":false,"cost":null,"sandbox":"host"}"#;
    const OUTPUT: &str = r#"{"success":true,"content":[{"type":"text","text":""}]}"#;
    const ENDING: &str =
        r#"{"routing":"concurrent","run":0,"cancel_requested":false,"queued_us":2500,"ran_us":0}"#;

    /// A program that writes the rows of calls with nothing around.
    struct Bare {
        db: Connection,
        /// How it inserts a batch, a call and an attempt, and completes a call.
        sql: [&'static str; 4],
        groups: usize,
    }

    impl Bare {
        /// With the tables of a journal and its settings, and this index.
        fn same(file: &Path, durability: Durability, index: &str) -> Self {
            let settings = Settings::default().durability(durability);
            let journal = Journal::open(file, settings).expect("the journal can be opened");
            // Its rows belong to sessions.
            runtime().block_on(async {
                let engine = engine(Some(&journal)).await;
                for agent in 0..AT_ONCE {
                    let session = engine.session(format!("agent-{agent}"));
                    session.recorded().await.expect("it can be written");
                }
            });
            journal.close().expect("it can be closed");
            let more = format!(
                "PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = 8192; PRAGMA journal_size_limit = 67108864; {index}"
            );
            let sql = [
                "INSERT INTO batch_rows (session, agent, turn, number, request, parent, is_sequential, calls, arrived_ms, is_resend)
                 VALUES (?1, 'root', ?2, ?2, NULL, NULL, 0, 1, ?3, 0)",
                "INSERT INTO call_rows (id, batch, place, call_id, tool, arguments, is_text, key, more, arrived_ms)
                 VALUES (?1, ?2, 0, 'call_0', 'write', ?3, 0, NULL, NULL, ?4)",
                "INSERT INTO attempt_rows (call, number, version, side_effects, arguments, key, approval, digest, timeout_ms,
                 facts, started_ms) VALUES (?1, 1, '1', 'write', NULL, NULL, NULL, NULL, 30000, ?2, ?3)",
                "UPDATE call_rows SET ended_ms = ?4, status = ?2, code = NULL, ending = ?3, dedupe = 'fresh', attempts = 1,
                 sandbox = 'host', was_waited_for = 1 WHERE id = ?1",
            ];
            Self::of(file, durability, &more, sql)
        }

        /// With leaner tables, and what SQLite has by default.
        fn lean(file: &Path, durability: Durability) -> Self {
            let tables = "CREATE TABLE b (id INTEGER PRIMARY KEY AUTOINCREMENT, session, agent, turn, number, request, parent, calls, at);
                 CREATE INDEX b1 ON b (session, turn, number);
                 CREATE TABLE c (id INTEGER PRIMARY KEY, batch, place, call_id, tool, arguments, is_text, key, more, at, ended,
                     status, code, ending, dedupe, attempts, sandbox, waited);
                 CREATE INDEX c1 ON c (batch); CREATE INDEX c2 ON c (id) WHERE ended IS NULL;
                 CREATE TABLE a (call, number, version, effects, arguments, timeout, facts, at, ended, status,
                     PRIMARY KEY (call, number));";
            let sql = [
                "INSERT INTO b (session, agent, turn, number, calls, at) VALUES (?1, 'root', ?2, ?2, 1, ?3)",
                "INSERT INTO c (id, batch, place, call_id, tool, arguments, is_text, at)
                 VALUES (?1, ?2, 0, 'call_0', 'write', ?3, 0, ?4)",
                "INSERT INTO a (call, number, version, effects, arguments, timeout, facts, at)
                 VALUES (?1, 1, '1', 'write', NULL, 30000, ?2, ?3)",
                "UPDATE c SET ended = ?4, status = ?2, ending = ?3, dedupe = 'fresh', attempts = 1, sandbox = 'host',
                 waited = 1 WHERE id = ?1",
            ];
            Self::of(file, durability, tables, sql)
        }

        fn of(file: &Path, durability: Durability, more: &str, sql: [&'static str; 4]) -> Self {
            let db = Connection::open(file).expect("the file can be opened");
            let synchronous = if durability == Durability::Full { "FULL" } else { "NORMAL" };
            let settings = format!("PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous}; {more}");
            db.execute_batch(&settings).expect("the tables can be made");
            Self { db, sql, groups: 0 }
        }

        fn run(&self, statement: usize, values: impl rusqlite::Params) {
            let mut statement = self.db.prepare_cached(self.sql[statement]).expect("it is SQL");
            statement.execute(values).expect("a row");
        }

        /// The rows of so many groups of calls: all starts of a group in one transaction, all ends in the next one.
        fn commits(&mut self, groups: usize) {
            let at = 1_764_280_000_000_i64;
            for group in self.groups..self.groups + groups {
                let mut rows = Vec::with_capacity(AT_ONCE);
                self.db.execute_batch("BEGIN IMMEDIATE").expect("it can begin");
                for agent in 0..AT_ONCE {
                    self.run(0, params![agent as i64 + 1, group as i64, at]);
                    let batch = self.db.last_insert_rowid();
                    self.run(1, params![batch << 24, batch, arguments(agent).to_string(), at]);
                    self.run(2, params![batch << 24, FACTS, at]);
                    rows.push(batch << 24);
                }
                self.db.execute_batch("COMMIT; BEGIN IMMEDIATE").expect("it can commit");
                for row in rows {
                    self.run(3, params![row, OUTPUT, ENDING, at]);
                }
                self.db.execute_batch("COMMIT").expect("it can commit");
            }
            self.groups += groups;
        }
    }

    /// Works until SQLite's log does not grow any more.
    fn warm_up(file: &Path, mut work: impl FnMut()) {
        let mut log = file.as_os_str().to_owned();
        log.push("-wal");
        let size = || std::fs::metadata(&log).map_or(0, |log| log.len());
        for _ in 0..200 {
            let before = size();
            work();
            if size() == before {
                return;
            }
        }
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
        let files =
            ["same", "unfound", "lean", "journal"].map(|what| directory.join(format!("{what}-{name}")));
        let index = "CREATE INDEX batch_turns ON batch_rows (session, turn, number)";
        let mut bare = [
            Bare::same(&files[0], durability, index),
            Bare::same(&files[1], durability, ""),
            Bare::lean(&files[2], durability),
        ];
        let settings = Settings::default().durability(durability);
        let journal = Journal::open(&files[3], settings).expect("the journal can be opened");
        let runtime = runtime();
        let (without, with) = runtime.block_on(async { (engine(None).await, engine(Some(&journal)).await) });
        let open = |engine: &Engine| -> Vec<_> {
            (0..AT_ONCE).map(|agent| engine.session(format!("agent-{agent}"))).collect()
        };
        let _open = [open(&without), open(&with)];
        for (bare, file) in bare.iter_mut().zip(&files) {
            warm_up(file, || bare.commits(each));
        }
        warm_up(&files[3], || runtime.block_on(writes(&with, each)));
        let mut rows = Writes::default();
        // Not between the rounds: they would find the cores busy, and the disk idle. One round is for counting instructions.
        let line = || if rounds > 1 { line_ns() } else { 0.0 };
        let lines_before = line();
        let before = journal.status().commits;
        for _ in 0..rounds {
            rows.round(&runtime, &mut bare, [&without, &with], each);
        }
        let commits = journal.status().commits - before;
        let in_a_commit = (rounds * each * AT_ONCE) as f64 / commits as f64;
        println!(
            "writes, {AT_ONCE} at once, {name}, as multiples of a bare group commit of the same rows (time):"
        );
        rows.print();
        println!("  a line to another core and back    {} ns", range(&[lines_before, line()]));
        println!(
            "  calls in a commit                  {in_a_commit:.1}{}",
            if name == "Full" { "  goal 16" } else { "" }
        );
    }

    /// What writes cost, as multiples of the bare commits of the same round.
    #[derive(Default)]
    struct Writes {
        bare: Vec<f64>,
        unfound: Vec<f64>,
        lean: Vec<f64>,
        without: Vec<f64>,
        with: Vec<f64>,
        beside_unfound: Vec<f64>,
        beside_lean: Vec<f64>,
        callers: Vec<f64>,
        writers: Vec<f64>,
    }

    fn line_ns() -> f64 {
        round_trip_ns().expect("the system tells of its cores").unwrap_or_default()
    }

    impl Writes {
        fn round(&mut self, runtime: &Runtime, bare: &mut [Bare; 3], engines: [&Engine; 2], each: usize) {
            let [(least, processor), (unfound, _), (lean, _)] = bare.each_mut().map(|bare| {
                let mut processor = Duration::ZERO;
                let time = passes(ClockId::Monotonic, || {
                    processor = passes(ClockId::ThreadCPUTime, || bare.commits(each));
                });
                (time.as_secs_f64(), processor.as_secs_f64())
            });
            self.bare.push(processor / least);
            self.unfound.push(unfound / least);
            self.lean.push(lean / least);
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
            self.beside_unfound.push(with[0] * least / unfound);
            self.beside_lean.push(with[0] * least / lean);
            self.callers.push(with[1]);
            self.writers.push(with[2]);
        }

        fn print(&self) {
            let row = |what: &str, all: &[f64], goal: &str| {
                println!("  {what:<35}{:.2} ({}){goal}", median(all.to_vec()), range(all));
            };
            row("the bare commits, processor", &self.bare, "");
            row("  without its index of sessions", &self.unfound, "");
            row("  into leaner tables", &self.lean, "");
            row("without a journal", &self.without, "");
            row("with a journal", &self.with, "  goal 1.5");
            row("  beside those without the index", &self.beside_unfound, "");
            row("  beside those with leaner tables", &self.beside_lean, "");
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
