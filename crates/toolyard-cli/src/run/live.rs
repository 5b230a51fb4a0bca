//! The live view: shows on a terminal what runs and what waits; of episodes, how far they are.

mod progress;
mod state;

use crate::{cli::RunArgs, screen::Screen};
use parking_lot::Mutex;
use state::LiveState;
use std::{collections::HashMap, io::IsTerminal, sync::Arc, time::Duration};
use tokio::{task::AbortHandle, time::Instant};
use toolyard::{Event, PoolWidths};

/// The interval between draws. A run that ends before the first one shows nothing.
const DRAW_INTERVAL: Duration = Duration::from_millis(100);

const TEMPLATE: &str = "{spinner} {bar:24} {pos}/{len} calls  {msg}";

/// The template for episodes whose turns are counted, and for others: a total that is unknown is not shown.
const TURNS: &str = "{spinner} {bar:16} {pos}/{len} turns  {wide_msg}";
const TURNS_UNCOUNTED: &str = "{spinner} {pos} turns  {wide_msg}";

/// A view that redraws itself until it is dropped.
#[derive(Debug)]
pub(super) struct Live {
    state: Arc<Mutex<LiveState>>,
    screen: Screen,
    task: AbortHandle,
}

impl Live {
    /// Whether there is to be one: standard error is a terminal, and it is wanted.
    pub(super) fn is_shown(args: &RunArgs) -> bool {
        args.shows_messages() && !args.no_progress && std::io::stderr().is_terminal()
    }

    /// Starts a view.
    pub(super) fn start(widths: PoolWidths) -> Self {
        let state = Arc::new(Mutex::new(LiveState::default()));
        let screen = Screen::new(TEMPLATE);
        let task = tokio::spawn(draw(state.clone(), screen.clone(), widths)).abort_handle();
        Self { state, screen, task }
    }

    /// Shows turns from now on: so many are done, of so many if that is known.
    pub(super) fn begin_turns(&self, done: u64, total: Option<u64>) {
        self.state.lock().begin_turns(done, total, Instant::now());
        self.screen.change_template(if total.is_some() { TURNS } else { TURNS_UNCOUNTED });
    }

    /// Another turn has ended.
    pub(super) fn turn_ended(&self) {
        self.state.lock().turn_ended();
    }

    /// So many turns will not run.
    pub(super) fn turns_skipped(&self, turns: u64) {
        self.state.lock().turns_skipped(turns);
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
        let (done, total) = state.position();
        bar.set_length(total);
        bar.set_position(done);
        bar.set_message(state.message(widths, Instant::now()));
        bar.tick();
    }
}
