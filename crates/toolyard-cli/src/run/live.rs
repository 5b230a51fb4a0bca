//! The live view: shows on a terminal what runs and what waits.

mod state;

use crate::screen::Screen;
use parking_lot::Mutex;
use state::LiveState;
use std::{collections::HashMap, io::IsTerminal, sync::Arc, time::Duration};
use tokio::{task::AbortHandle, time::Instant};
use toolyard::{Event, PoolWidths};

/// The interval between draws. A run that ends before the first one shows nothing.
const DRAW_INTERVAL: Duration = Duration::from_millis(100);

const TEMPLATE: &str = "{spinner} {bar:24} {pos}/{len} calls  {msg}";

/// A view that redraws itself until it is dropped.
#[derive(Debug)]
pub(super) struct Live {
    state: Arc<Mutex<LiveState>>,
    screen: Screen,
    task: AbortHandle,
}

impl Live {
    /// Starts a view, if standard error is a terminal.
    pub(super) fn on_terminal(widths: PoolWidths) -> Option<Self> {
        std::io::stderr().is_terminal().then(|| Self::start(widths))
    }

    fn start(widths: PoolWidths) -> Self {
        let state = Arc::new(Mutex::new(LiveState::default()));
        let screen = Screen::new(TEMPLATE);
        let task = tokio::spawn(draw(state.clone(), screen.clone(), widths)).abort_handle();
        Self { state, screen, task }
    }

    /// The screen that it is drawn on.
    pub(super) fn screen(&self) -> Screen {
        self.screen.clone()
    }

    /// The event sink that feeds it.
    pub(super) fn sink(&self) -> impl Fn(&Event) + Send + Sync + 'static {
        let state = self.state.clone();
        move |event| state.lock().on_event(event, Instant::now())
    }

    /// Sets the maximum number of attempts, by tool.
    pub(super) fn set_attempts_max(&self, attempts_max: HashMap<String, u32>) {
        self.state.lock().set_attempts_max(attempts_max);
    }

    /// Takes the view off the screen for good.
    pub(super) fn close(&self) {
        self.task.abort();
        self.screen.close();
    }

    /// Takes the view off the screen while something else is printed.
    pub(super) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.screen.suspend(print)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.close();
    }
}

async fn draw(state: Arc<Mutex<LiveState>>, screen: Screen, widths: PoolWidths) {
    loop {
        tokio::time::sleep(DRAW_INTERVAL).await;
        let Some(bar) = screen.bar() else { continue };
        let state = state.lock();
        bar.set_length(state.calls);
        bar.set_position(state.ended);
        bar.set_message(state.message(widths, Instant::now()));
        bar.tick();
    }
}
