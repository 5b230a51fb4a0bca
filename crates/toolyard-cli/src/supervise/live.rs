//! The live view: a table of the agents that have not ended, on a terminal.

use crate::{display::clip, logging, screen::Screen, table::Table};
use std::{io::IsTerminal, time::Duration};
use tokio_util::task::AbortOnDropHandle;
use toolyard_agents::{AgentStatus, Supervisor};

/// The interval between draws. Agents that end before the first one show nothing.
const DRAW_INTERVAL: Duration = Duration::from_millis(250);

/// The most agents that are shown; a terminal has few lines.
const ROWS_MAX: usize = 16;

const NAME_CHARS: usize = 40;

/// A view that redraws itself until it is dropped.
#[derive(Debug)]
pub(super) struct Live {
    screen: Screen,
    task: Option<AbortOnDropHandle<()>>,
}

impl Live {
    /// A view, if standard error is a terminal. The log is written above it.
    pub(super) fn on_terminal() -> Option<Self> {
        std::io::stderr().is_terminal().then(|| {
            let screen = Screen::new("{msg}");
            logging::above(Some(screen.clone()));
            Self { screen, task: None }
        })
    }

    /// The screen that it is drawn on.
    pub(super) fn screen(&self) -> Screen {
        self.screen.clone()
    }

    /// Shows these agents from now on.
    pub(super) fn show(&mut self, supervisor: &Supervisor) {
        let drawing = draw(self.screen.clone(), supervisor.clone());
        self.task = Some(AbortOnDropHandle::new(tokio::spawn(drawing)));
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.task = None;
        logging::above(None);
        self.screen.close();
    }
}

async fn draw(screen: Screen, supervisor: Supervisor) {
    loop {
        tokio::time::sleep(DRAW_INTERVAL).await;
        let agents = supervisor.status().await;
        let text = text(&agents, supervisor.ended());
        let Some(bar) = screen.bar() else { continue };
        bar.set_message(text);
        bar.tick();
    }
}

/// What is drawn of these agents, when so many others have ended.
fn text(agents: &[AgentStatus], ended: u64) -> String {
    let mut table = Table::new(["agent", "state", "running", "ended", "failed", "models"]);
    for agent in agents.iter().take(ROWS_MAX) {
        let counts = &agent.counts;
        table.row([
            clip(agent.agent.as_str(), NAME_CHARS),
            agent.phase.as_str().to_owned(),
            counts.calls.saturating_sub(counts.answered).to_string(),
            counts.answered.to_string(),
            counts.failed.to_string(),
            agent.model_requests().to_string(),
        ]);
    }
    let more = match agents.len().saturating_sub(ROWS_MAX) {
        0 => String::new(),
        more => format!("{more} more; "),
    };
    format!("{table}{more}{} agents live, {ended} have ended", agents.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolyard_agents::AgentPhase;

    fn agent(name: &str) -> AgentStatus {
        let mut agent = AgentStatus::new(name.into(), AgentPhase::Running);
        (agent.counts.calls, agent.counts.answered, agent.counts.failed) = (7, 5, 1);
        agent
    }

    /// AG-8: who lives is shown with what it does, and how many others there are.
    #[test]
    fn agents_are_shown_with_what_they_do() {
        let expect = "agent   state    running  ended  failed  models\n\
                      root/a  running  2        5      1       0\n1 agents live, 3 have ended";
        assert_eq!(text(&[agent("root/a")], 3), expect);
        let many: Vec<_> = (0..100).map(|n| agent(&format!("root/{n}"))).collect();
        let text = text(&many, 0);
        assert_eq!(text.lines().count(), ROWS_MAX + 2);
        assert!(text.ends_with("84 more; 100 agents live, 0 have ended"), "{text}");
    }
}
