//! What an embedder supplies: an approver, hooks and a back-end, all of them shaken.

use super::Stage;
use crate::sim::{
    journal::Fact,
    program::{AnswerPlan, EditPlan, HookPlan},
};
use std::{future::pending, sync::Arc, time::Duration};
use tokio::time::sleep;
use toolyard::{
    Abort, Answer, ApprovalRequest, Approver, Call, Caller, Hooks, Outcome, Receipt, async_trait,
};

/// An approver that answers as the calls' plans say.
pub(super) struct ScriptedApprover {
    pub(super) stage: Arc<Stage>,
}

#[async_trait]
impl Approver for ScriptedApprover {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        let plan = self.stage.plan(request.call_id());
        self.stage
            .search("a question", || format!("{request:?} {} {}", request.arguments(), request.pattern()));
        self.stage.shaker.nudge().await;
        // Somebody else for every other call, who sometimes says why.
        let who = self.stage.program.with_secret(&format!("person {}", plan.node % 3));
        if let EditPlan::Misfits(times) = plan.edit
            && self.stage.misfits_so_far(plan.node) < times
        {
            let answer = Answer::edit(&who, "{\"broken\": ");
            self.stage.journal.note(Fact::Answered(plan.node, *request.digest(), answer.clone()));
            return answer;
        }
        if let Some(held_ms) = plan.held_ms {
            request.showing().hold();
            sleep(Duration::from_millis(held_ms)).await;
            request.showing().shown();
        }
        let (after, mut answer) = match plan.answer {
            AnswerPlan::Yes(after) if plan.edit == EditPlan::Fits => {
                (after, Answer::edit(&who, super::edited(&self.stage.program, &plan)))
            }
            AnswerPlan::Yes(after) => (after, Answer::allow(&who)),
            AnswerPlan::Always(after) => (after, Answer::always(&who)),
            AnswerPlan::No(after) => (after, Answer::deny(&who)),
            AnswerPlan::Never => pending().await,
            AnswerPlan::Panic => {
                super::handler::quiet_panic(self.stage.program.with_secret("scripted panic"))
            }
        };
        if plan.node.is_multiple_of(2) {
            answer = answer.because(self.stage.program.with_secret("it is that kind of day"));
        }
        sleep(Duration::from_millis(after)).await;
        self.stage.journal.note(Fact::Answered(plan.node, *request.digest(), answer.clone()));
        answer
    }

    fn receipt(&self, request: &ApprovalRequest, receipt: Receipt) {
        let node = self.stage.plan(request.call_id()).node;
        self.stage.journal.note(Fact::Receipt(node, receipt));
    }
}

/// Hooks that act as the calls' plans say.
pub(super) struct ScriptedHooks {
    pub(super) stage: Arc<Stage>,
}

#[async_trait]
impl Hooks for ScriptedHooks {
    async fn on_tool_call(&self, call: &Call, _: &Caller<'_>) -> Result<(), Abort> {
        self.stage.shaker.nudge().await;
        let plan = self.stage.plan(&call.id);
        match plan.hook {
            _ if plan.broken => Ok(()),
            HookPlan::Go(after) => {
                sleep(Duration::from_millis(after)).await;
                Ok(())
            }
            HookPlan::Abort => Err(Abort::because(self.stage.program.with_secret("the hook says no"))),
            HookPlan::Panic => super::handler::quiet_panic(self.stage.program.with_secret("scripted panic")),
        }
    }

    async fn on_tool_start(&self, _: &Call, _: &Caller<'_>) {
        self.stage.shaker.nudge().await;
    }

    async fn on_tool_end(&self, outcome: &Outcome, _: &Caller<'_>) {
        self.stage.search_outcome(outcome);
        self.stage.shaker.nudge().await;
    }
}
