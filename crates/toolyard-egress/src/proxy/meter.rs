//! Counts what passes, bounds it, and notes when something did.

use super::traffic::Traffic;
use parking_lot::Mutex;
use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, sleep_until},
};

/// Bytes in one direction over all connections of a proxy, and how many there may be.
#[derive(Debug)]
pub(super) struct Budget {
    spent: AtomicU64,
    most: Option<u64>,
}

impl Budget {
    pub(super) fn new(most: Option<u64>) -> Self {
        Self { spent: AtomicU64::new(0), most }
    }

    pub(super) fn is_spent(&self) -> bool {
        self.most.is_some_and(|most| self.spent.load(Ordering::Relaxed) >= most)
    }

    /// Spends bytes that have passed.
    ///
    /// # Errors
    /// They are more than are left.
    fn spend(&self, bytes: u64) -> Result<(), Spent> {
        let spent = self.spent.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if self.most.is_some_and(|most| spent > most) { Err(Spent) } else { Ok(()) }
    }
}

/// The bytes that may pass have passed.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("no more bytes may pass through this proxy")]
pub(super) struct Spent;

/// What passes on one connection of a program.
#[derive(Debug)]
pub(super) struct Meter {
    up: AtomicU64,
    down: AtomicU64,
    /// When something passed last.
    touched: Mutex<Instant>,
    is_bounded: AtomicBool,
    is_over: AtomicBool,
    budget_up: Arc<Budget>,
    budget_down: Arc<Budget>,
    traffic: Traffic,
}

impl Meter {
    pub(super) fn new(budget_up: Arc<Budget>, budget_down: Arc<Budget>, traffic: Traffic) -> Self {
        Self {
            up: AtomicU64::new(0),
            down: AtomicU64::new(0),
            touched: Mutex::new(Instant::now()),
            is_bounded: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            budget_up,
            budget_down,
            traffic,
        }
    }

    /// From now on bytes spend the budgets, beginning with those that have passed. Until then they are a head and a
    /// refusal, which are bounded otherwise, and must pass also when nothing else may.
    ///
    /// # Errors
    /// Nothing is left of a budget, or less than has passed: then nothing is spent from now on.
    pub(super) fn bound(&self) -> Result<(), Spent> {
        let (up, down) = self.bytes();
        if self.budget_up.is_spent() || self.budget_down.is_spent() {
            return Err(Spent);
        }
        self.budget_up.spend(up).and(self.budget_down.spend(down))?;
        self.is_bounded.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Whether this connection has met the end of a budget.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// The bytes from the program, and to it.
    pub(super) fn bytes(&self) -> (u64, u64) {
        (self.up.load(Ordering::Relaxed), self.down.load(Ordering::Relaxed))
    }

    /// Returns when nothing has passed for so long.
    pub(super) async fn idle(&self, longest: Duration) {
        loop {
            let until = *self.touched.lock() + longest;
            sleep_until(until).await;
            if *self.touched.lock() + longest <= until {
                return;
            }
        }
    }

    fn pass(&self, bytes: usize, count: &AtomicU64, budget: &Budget) -> io::Result<()> {
        let bytes = bytes as u64;
        count.fetch_add(bytes, Ordering::Relaxed);
        *self.touched.lock() = Instant::now();
        if !self.is_bounded.load(Ordering::Relaxed) {
            return Ok(());
        }
        budget.spend(bytes).map_err(|spent| {
            self.is_over.store(true, Ordering::Relaxed);
            io::Error::other(spent)
        })
    }
}

/// A connection of a program, with its meter.
pub(super) struct Metered<T> {
    stream: T,
    meter: Arc<Meter>,
}

impl<T> Metered<T> {
    pub(super) fn new(stream: T, meter: Arc<Meter>) -> Self {
        Self { stream, meter }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Metered<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, into))?;
        let read = into.filled().len() - before;
        self.meter.traffic.sent(read as u64);
        Poll::Ready(self.meter.pass(read, &self.meter.up, &self.meter.budget_up))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Metered<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, from))?;
        self.meter.traffic.got(written as u64);
        self.meter.pass(written, &self.meter.down, &self.meter.budget_down)?;
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    fn meter(most: Option<u64>) -> Arc<Meter> {
        let budget = || Arc::new(Budget::new(most));
        Arc::new(Meter::new(budget(), budget(), Traffic::default()))
    }

    /// SB-10: what passes is counted, and once it is bounded no more passes than may.
    #[tokio::test]
    async fn no_more_passes_than_may() {
        let (ours, mut theirs) = duplex(1000);
        let meter = meter(Some(10));
        let mut metered = Metered::new(ours, meter.clone());
        metered.write_all(&[b'x'; 4]).await.unwrap();
        assert_eq!(meter.bytes(), (0, 4));
        meter.bound().unwrap();
        metered.write_all(&[b'x'; 6]).await.unwrap();
        assert!(!meter.is_over());
        meter.bound().unwrap_err();
        metered.write_all(b"x").await.unwrap_err();
        assert!(meter.is_over());
        // The other direction has a budget of its own.
        theirs.write_all(b"abc").await.unwrap();
        metered.read_exact(&mut [0; 3]).await.unwrap();
        assert_eq!(meter.bytes(), (3, 11));
    }

    /// SB-10: what has passed before it was bounded counts, and what is not admitted spends nothing more.
    #[tokio::test]
    async fn what_has_passed_counts() {
        let (ours, mut theirs) = duplex(1000);
        let meter = meter(Some(10));
        let mut metered = Metered::new(ours, meter.clone());
        theirs.write_all(&[b'x'; 11]).await.unwrap();
        metered.read_exact(&mut [0; 11]).await.unwrap();
        meter.bound().unwrap_err();
        metered.write_all(b"refused").await.unwrap();
        assert!(!meter.is_over());
    }

    /// SB-10: whatever passes begins the time anew.
    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_when_nothing_passes() {
        let (ours, mut theirs) = duplex(1000);
        let meter = meter(None);
        let mut metered = Metered::new(ours, meter.clone());
        let begin = Instant::now();
        let busy = async {
            for _ in 0..3 {
                tokio::time::sleep(Duration::from_secs(4)).await;
                theirs.write_all(b"x").await.unwrap();
                metered.read_exact(&mut [0]).await.unwrap();
            }
        };
        tokio::join!(meter.idle(Duration::from_secs(5)), busy);
        assert_eq!(begin.elapsed(), Duration::from_secs(12 + 5));
    }
}
