//! What a live view draws on the terminal, which can be released while something else needs the screen.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;
use std::sync::Arc;

/// What is drawn. Cheap to clone; all clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Screen {
    line: Arc<Mutex<Line>>,
}

#[derive(Debug)]
struct Line {
    /// What is drawn; `None` while the line is held, and after the end.
    bar: Option<ProgressBar>,
    is_closed: bool,
    template: &'static str,
}

/// Keeps the view off the screen until dropped.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    screen: &'a Screen,
}

impl Screen {
    /// One that draws by this template of indicatif's, on standard error.
    pub(crate) fn new(template: &'static str) -> Self {
        let line = Line { bar: Some(bar(template)), is_closed: false, template };
        Self { line: Arc::new(Mutex::new(line)) }
    }

    /// Draws by this template from now on.
    pub(crate) fn change_template(&self, template: &'static str) {
        let mut line = self.line.lock();
        line.template = template;
        if let Some(bar) = &line.bar {
            bar.set_style(style(template));
        }
    }

    /// What to draw, unless the line is held or closed.
    pub(crate) fn bar(&self) -> Option<ProgressBar> {
        self.line.lock().bar.clone()
    }

    /// Takes the view off the screen. There must be only one holder at a time.
    pub(crate) fn hold(&self) -> Held<'_> {
        if let Some(bar) = self.line.lock().bar.take() {
            bar.finish_and_clear();
        }
        Held { screen: self }
    }

    /// Takes the view off the screen while something else is printed.
    pub(crate) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        match self.bar() {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Takes the view off the screen for good.
    pub(crate) fn close(&self) {
        self.line.lock().is_closed = true;
        drop(self.hold());
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut line = self.screen.line.lock();
        if !line.is_closed {
            line.bar = Some(bar(line.template));
        }
    }
}

fn bar(template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    bar.set_style(style(template));
    bar
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
