//! `Agent`: an agent starts another one (AG-10).

use super::Kin;
use crate::{AgentEnd, AgentReport, StartError, Supervisor, TERM_GRACE, supervisor::Shared};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use toolyard::{
    SubAgents as _, Tool, ToolContext, ToolError, ToolFactory, ToolOutput, ToolSpec, async_trait,
};

/// How long an agent has to end whose call is cancelled: as long as what its own calls have started, and a little longer,
/// in which it hears the ends of these. Its parent has longer, if it is told to end too.
const GRACE: Duration = TERM_GRACE.saturating_add(Duration::from_secs(1));

/// The tool, which does not keep its supervisor: that keeps an engine's tools.
#[derive(Clone)]
pub(super) struct Spawn {
    shared: Weak<Shared>,
}

impl Spawn {
    pub(super) fn new(supervisor: &Supervisor) -> Self {
        Self { shared: Arc::downgrade(supervisor.shared()) }
    }
}

impl ToolFactory for Spawn {
    fn spec(&self) -> ToolSpec {
        ToolSpec::execute("Agent")
            .describe("Starts another agent, waits for its end, and returns what it gave with its bye.")
            .input_schema(json!({
                "type": "object",
                "properties": {
                    "profile": {"type": "string", "description": "What it is started from"},
                    "input": {"description": "What it is given, any JSON"},
                    "name": {"type": "string", "description": "Its name among the agents of this one"},
                },
                "required": ["profile"],
                "additionalProperties": false,
            }))
            .recursive()
    }

    fn create(&self) -> Arc<dyn Tool> {
        Arc::new(self.clone())
    }
}

#[async_trait]
impl Tool for Spawn {
    async fn execute(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let profile = args["profile"].as_str().unwrap_or_default();
        let shared =
            self.shared.upgrade().ok_or_else(|| ToolError::execution("there is no supervisor any more"))?;
        let parent = shared.kinship.find(cx.session(), cx.agent());
        let parent = parent.filter(|parent| parent.profile.may_spawn.contains(profile)).ok_or_else(|| {
            ToolError::permission_denied(format!(
                "this agent may not start agents of the profile '{profile}'"
            ))
        })?;
        let mut agent = start(&Supervisor::of(shared), cx, profile, &parent, args).await?;
        let report = tokio::select! {
            biased;
            report = agent.ended() => report,
            () = cx.cancelled() => {
                agent.stop(GRACE);
                agent.ended().await
            }
        };
        result(report)
    }
}

/// Starts an agent within what its parent may.
async fn start(
    supervisor: &Supervisor,
    cx: &ToolContext,
    name: &str,
    parent: &Kin,
    args: &Value,
) -> Result<crate::AgentHandle, ToolError> {
    let failed = |error: StartError| ToolError::execution(error.to_string());
    let profile = supervisor.profile(name).map_err(failed)?.clone().within(&parent.profile);
    let session = cx.fork(supervisor.policy(&profile, args["name"].as_str()))?;
    let input = args.get("input").filter(|input| !input.is_null()).cloned();
    supervisor.launch(session, name, profile, input).await.map_err(failed)
}

/// What the parent is told.
fn result(report: AgentReport) -> Result<ToolOutput, ToolError> {
    let AgentReport { agent, end, result, .. } = report;
    match end {
        AgentEnd::Ended => Ok(ToolOutput::json(match result {
            Some(result @ Value::Object(_)) => result,
            Some(result) => json!({"result": result}),
            None => json!({}),
        })),
        end => {
            let why = end.why().map(|why| format!(": {why}")).unwrap_or_default();
            Err(ToolError::execution(format!("agent '{agent}' ended as {end}{why}")))
        }
    }
}
