//! What a server costs: the processor time of a turn of one call that does nothing, as a multiple of what an axum server
//! takes that answers the same bytes to the same requests, and the memory of many sessions that are all followed.
//!
//! ```text
//!   this process ── requests, on 16 connections ──► itself again, as a server ── processor time, memory ──► this process
//! ```
//!
//! `cargo bench -p toolyard-server --bench load`

#[cfg(target_os = "linux")]
mod client;
#[cfg(target_os = "linux")]
mod served;
#[cfg(target_os = "linux")]
mod times;
#[cfg(target_os = "linux")]
mod used;

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("load: not measured: what a process has used is read as Linux tells it");
}

#[cfg(target_os = "linux")]
fn main() -> Result<(), linux::Failed> {
    linux::main()
}

#[cfg(target_os = "linux")]
mod linux {
    use crate::{
        client::{Client, Follower},
        served::{self, Served, What},
        times::{Rounds, Times},
        used,
    };
    use std::env;
    use tokio::runtime::Builder;
    use toolyard_bench::cores::round_trip_ns;

    pub(crate) type Failed = Box<dyn std::error::Error + Send + Sync>;

    /// Whether this is a test, which only shows that it works.
    const IS_TEST: bool = cfg!(debug_assertions);

    /// How many requests are made at once.
    const CONNECTIONS: usize = 16;

    /// How many requests are measured together, on each connection.
    const REQUESTS: usize = if IS_TEST { 2 } else { 1000 };

    /// How often each server is measured.
    const ROUNDS: usize = if IS_TEST { 1 } else { 9 };

    /// How many times an axum server's time a turn may take.
    const TIME_GOAL: f64 = 2.0;

    /// How many sessions there are, each with a stream of events.
    const SESSIONS: usize = if IS_TEST { 20 } else { 2000 };

    /// How many bytes a server with all of them may take.
    const MEMORY_GOAL: usize = 200_000_000;

    pub(crate) fn main() -> Result<(), Failed> {
        used::allow_files()?;
        if let Some(what) = env::args().find_map(|arg| What::named(&arg)) {
            return served::serve(what);
        }
        Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(async {
            time().await?;
            memory().await
        })
    }

    /// Measures the servers in turns, forth and back.
    async fn time() -> Result<(), Failed> {
        let ours = What::Toolyard { inline: false };
        let mut repeats = Measured::start(ours.clone(), Some("first")).await?;
        let mut ours = Measured::start(ours, None).await?;
        let mut inline = Measured::start(What::Toolyard { inline: true }, None).await?;
        // The other one answers what ours does.
        let answer = ours.clients[0].turn().await?;
        let mut least = Measured::start(What::Constant(answer), None).await?;
        for round in 0..ROUNDS {
            let mut all = [&mut ours, &mut inline, &mut repeats, &mut least];
            if round % 2 == 1 {
                all.reverse();
            }
            for measured in all {
                measured.measure().await?;
            }
        }
        by_cores([&least.times, &ours.times, &inline.times]);
        let (ours, inline) = (ours.times.typical(), inline.times.typical());
        let (repeats, least) = (repeats.times.typical(), least.times.typical());
        println!("load, a turn of one call: constants: {least:.1} µs, 1.00 times constants");
        for (what, time) in [("the server", ours), ("the server, its tool in place", inline)] {
            let (ratio, judged) = (time / least, if time <= TIME_GOAL * least { "met" } else { "missed" });
            println!(
                "load, a turn of one call: {what}: {time:.1} µs, {ratio:.2} times constants (goal {TIME_GOAL}: {judged})"
            );
        }
        println!(
            "load, a turn of one call: the server, repeating an answer that it has: {repeats:.1} µs, of which a turn is {:.2} \
             times",
            ours / repeats
        );
        Ok(())
    }

    /// Tells what was measured while cores were near and while they were far, each on its own.
    fn by_cores([least, ours, inline]: [&Times; 3]) {
        let all = [least, ours, inline];
        let nearest = all.iter().map(|times| times.least_line_ns()).fold(f64::MAX, f64::min);
        for rounds in [Rounds::Near(nearest), Rounds::Far(nearest)] {
            let lines = all.iter().flat_map(|times| times.lines(rounds));
            let (count, from, to) = lines
                .fold((0, f64::MAX, 0.0_f64), |(count, from, to), ns| (count + 1, ns.min(from), ns.max(to)));
            let [Some(least), Some(ours), Some(inline)] = all.map(|times| times.typical_of(rounds)) else {
                continue;
            };
            println!(
                "load, while a line of memory goes to the other core and back in {from:.0} to {to:.0} ns ({count} of {} \
                 measurements): constants {least:.1} µs, the server {ours:.1} µs, {:.2} times, its tool in place \
                 {inline:.1} µs, {:.2} times",
                3 * ROUNDS,
                ours / least,
                inline / least,
            );
        }
    }

    /// A server and its clients, and the processor time of each request.
    struct Measured {
        served: Served,
        clients: Vec<Client>,
        times: Times,
    }

    impl Measured {
        async fn start(what: What, key: Option<&str>) -> Result<Self, Failed> {
            let served = Served::start(what)?;
            let mut clients = Vec::new();
            for number in 0..CONNECTIONS {
                clients.push(Client::open(served.address, &format!("s{number}"), key).await?);
            }
            let mut all = Self { served, clients, times: Times::default() };
            all.requests().await?;
            Ok(all)
        }

        async fn measure(&mut self) -> Result<(), Failed> {
            let line_before = round_trip_ns()?;
            let before = self.served.used()?;
            self.requests().await?;
            let used = self.served.used()?.cpu_us - before.cpu_us;
            let line_ns = line_before.zip(round_trip_ns()?).map_or(0.0, |(before, after)| before.max(after));
            self.times.push(used as f64 / (CONNECTIONS * REQUESTS) as f64, line_ns);
            Ok(())
        }

        /// Makes the requests of a round.
        async fn requests(&mut self) -> Result<(), Failed> {
            let mut running = tokio::task::JoinSet::new();
            for mut client in self.clients.drain(..) {
                running.spawn(async move {
                    for _ in 0..REQUESTS {
                        client.turn().await?;
                    }
                    Ok::<_, Failed>(client)
                });
            }
            while let Some(ended) = running.join_next().await {
                self.clients.push(ended??);
            }
            Ok(())
        }
    }

    /// Measures a server whose sessions are all followed, and each of which has made a call.
    async fn memory() -> Result<(), Failed> {
        let mut served = Served::start(What::Toolyard { inline: false })?;
        let before = served.used()?.memory;
        let (mut clients, mut followers) = (Vec::new(), Vec::new());
        for number in 0..SESSIONS {
            let session = format!("s{number}");
            clients.push(Client::open(served.address, &session, None).await?);
            followers.push(Follower::open(served.address, &session).await?);
        }
        for (client, follower) in clients.iter_mut().zip(&mut followers) {
            client.turn().await?;
            follower.until("turn.ended").await?;
        }
        let memory = served.used()?.memory;
        let judged = if memory <= MEMORY_GOAL { "met" } else { "missed" };
        println!(
            "load: {SESSIONS} sessions that are followed, on {} connections: {:.0} MB of memory, {:.0} MB without any (goal \
             {:.0}: {judged})",
            2 * SESSIONS,
            memory as f64 / 1e6,
            before as f64 / 1e6,
            MEMORY_GOAL as f64 / 1e6,
        );
        Ok(())
    }
}
