//! The live view: shows on a terminal what runs and what waits.

mod screen;
mod seen;

pub(super) use screen::Screen;

use seen::Seen;
use std::{
    collections::HashMap,
    io::IsTerminal,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{task::AbortHandle, time::Instant};
use toolyard::{Event, PoolWidths};

/// The interval between draws. A run that ends before the first one shows nothing.
const EVERY: Duration = Duration::from_millis(100);

/// A view that redraws itself until it is dropped.
#[derive(Debug)]
pub(super) struct Live {
    seen: Arc<Mutex<Seen>>,
    screen: Screen,
    task: AbortHandle,
}

impl Live {
    /// Starts a view, if standard error is a terminal.
    pub(super) fn on_terminal(widths: PoolWidths) -> Option<Self> {
        std::io::stderr().is_terminal().then(|| Self::start(widths))
    }

    fn start(widths: PoolWidths) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let screen = Screen::new();
        let task = tokio::spawn(draw(seen.clone(), screen.clone(), widths)).abort_handle();
        Self { seen, screen, task }
    }

    /// The screen that it is drawn on.
    pub(super) fn screen(&self) -> Screen {
        self.screen.clone()
    }

    /// The event sink that feeds it.
    pub(super) fn sink(&self) -> impl Fn(&Event) + Send + Sync + 'static {
        let seen = self.seen.clone();
        move |event| lock(&seen).see(event, Instant::now())
    }

    /// Sets the maximum number of attempts, by tool.
    pub(super) fn know(&self, attempts_max: HashMap<String, u32>) {
        lock(&self.seen).know(attempts_max);
    }

    /// Takes the view off the screen while something else is printed.
    pub(super) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        match self.screen.bar() {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.task.abort();
        self.screen.close();
    }
}

async fn draw(seen: Arc<Mutex<Seen>>, screen: Screen, widths: PoolWidths) {
    loop {
        tokio::time::sleep(EVERY).await;
        let Some(bar) = screen.bar() else { continue };
        let seen = lock(&seen);
        bar.set_length(seen.calls);
        bar.set_position(seen.ended);
        bar.set_message(seen.message(widths, Instant::now()));
        bar.tick();
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
