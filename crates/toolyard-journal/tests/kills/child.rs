//! The process that is killed: an engine with a journal. Its first life works; each later one resumes what is open, reads
//! what has ended, and sends again what has a key.

use crate::{
    asking::Person,
    helping,
    plan::{Kind, Plan, confirmations},
    point::{Point, Recording},
    random::Random,
    resuming,
    tools::{Effects, say, tool},
    working,
};
use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::PathBuf,
    time::Duration,
};
use tokio::signal::unix::{SignalKind, signal};
use toolyard::{BreakerPolicy, Drain, Engine, Event, EventSink, RetryPolicy};
use toolyard_journal::{Journal, Settings};

const DIRECTORY: &str = "TOOLYARD_KILLS_DIRECTORY";
const SEED: &str = "TOOLYARD_KILLS_CHILD_SEED";
const LIFE: &str = "TOOLYARD_KILLS_CHILD_LIFE";
const POINT: &str = "TOOLYARD_KILLS_CHILD_POINT";

/// What a child is told.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) directory: PathBuf,
    /// Of its plan; without one it has the small plan.
    pub(crate) seed: Option<u64>,
    /// 0 works, the others resume.
    pub(crate) life: usize,
    pub(crate) point: Option<Point>,
}

impl Order {
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let mut all = vec![
            (DIRECTORY, self.directory.to_str().expect("a directory of ours has such a name").to_owned()),
            (LIFE, self.life.to_string()),
        ];
        all.extend(self.seed.map(|seed| (SEED, seed.to_string())));
        all.extend(self.point.map(|point| (POINT, point.to_text())));
        all
    }

    fn received() -> Self {
        let text = |name| std::env::var(name).ok();
        let number = |text: String| text.parse::<u64>().expect("a number");
        Self {
            directory: text(DIRECTORY).expect("another test starts this and says where").into(),
            seed: text(SEED).map(number),
            life: text(LIFE).map(number).expect("another test says which life it is") as usize,
            point: text(POINT).as_deref().map(Point::of),
        }
    }

    pub(crate) fn plan(&self) -> Plan {
        self.seed.map_or_else(Plan::small, Plan::random)
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.directory.join("agent.journal")
    }

    pub(crate) fn effects(&self) -> PathBuf {
        self.directory.join("effects")
    }

    pub(crate) fn events(&self) -> PathBuf {
        self.directory.join(format!("events.{}", self.life))
    }
}

/// Writes each event as a line, at once.
struct EventFile(File);

impl EventSink for EventFile {
    fn accept(&self, event: &Event) {
        let mut line = serde_json::to_string(event).unwrap();
        line.push('\n');
        (&self.0).write_all(line.as_bytes()).unwrap();
    }
}

/// Lives one life.
pub(crate) fn live() {
    let order = Order::received();
    let plan = order.plan();
    let mut runtime = match plan.one_thread {
        true => tokio::runtime::Builder::new_current_thread(),
        false => tokio::runtime::Builder::new_multi_thread(),
    };
    runtime.worker_threads(2).enable_all().build().unwrap().block_on(life(&order, &plan));
}

async fn life(order: &Order, plan: &Plan) {
    let mut asked_to_stop = signal(SignalKind::terminate()).unwrap();
    say(""); // the test's name may stand before the first line
    say("ready");
    let mut random = Random::new(order.seed.unwrap_or(0) ^ ((order.life as u64) << 32));
    let settings = Settings::default().durability(plan.durability);
    let journal = Journal::open(order.journal(), settings).unwrap();
    if plan.has_helper && order.life == 0 {
        let order = order.clone();
        tokio::task::spawn_blocking(move || helping::start(&order)).await.unwrap();
        say("helped");
    } else if plan.has_helper && !helping::has_written(order) {
        say("fault the journal is open, and a program of the first life still runs");
    }
    let recording = Recording::new(journal.clone(), order.point);
    let engine = engine(order, plan, &recording).await;
    let work = async {
        match order.life {
            0 => working::work(&engine, plan).await,
            life => resuming::resume(&engine, &recording, plan, &mut random, life).await,
        }
    };
    let stop = async {
        asked_to_stop.recv().await;
        say("stopping");
        let milliseconds = order.seed.unwrap_or(0) % 8;
        let drain = Drain::default().finish(Duration::from_millis(milliseconds)).grace(Duration::ZERO);
        engine.shutdown(drain).await;
    };
    {
        futures::pin_mut!(work, stop);
        match futures::future::select(work, stop).await {
            futures::future::Either::Left(_) => drop(engine.shutdown(Drain::default()).await),
            futures::future::Either::Right(((), work)) => work.await,
        }
    }
    journal.close().unwrap();
    say("closed");
}

async fn engine(order: &Order, plan: &Plan, recording: &Recording) -> Engine {
    let effects = Effects::open(&order.effects(), plan.durability);
    let events = OpenOptions::new().append(true).create(true).open(order.events()).unwrap();
    let ms = Duration::from_millis(1);
    let mut builder = Engine::builder()
        .confirmations(confirmations())
        .approver(Person { life: order.life })
        .events(EventFile(events))
        .recorder(recording.clone())
        .retry(RetryPolicy::default().with_delays(ms, 1.0, ms).with_max_attempts(5))
        .breaker(BreakerPolicy::default().with_enabled(false))
        .grace(ms);
    for kind in Kind::ALL {
        builder = builder.tool(tool(kind, &effects, recording.consents()));
    }
    builder.build().await.unwrap()
}
