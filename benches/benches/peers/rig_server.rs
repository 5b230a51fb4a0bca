//! rig's tool server, driven as rig's agents drive it: the calls of a turn form one stream, some run at once, all in
//! the agent's task; results in order. It has a lookup, arguments as text parsed per call, and tracing. No task per
//! call, no timeout, no ordering of calls that change things, no retry.

use crate::WIDTH;
use futures::{StreamExt, stream};
use rig_agent::tool::server::{ToolServer, ToolServerHandle};
use rig_core::{
    message::ToolName,
    tool::{DynamicTool, ToolContext, ToolOutput},
};
use serde_json::json;
use toolyard_bench::{Contender, Handler, Work, arguments};

#[derive(Clone)]
pub(crate) struct Rig {
    server: ToolServerHandle,
}

impl Rig {
    pub(crate) fn new(handler: Handler) -> Result<Self, String> {
        let name = ToolName::new("nothing").map_err(|error| error.to_string())?;
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let tool = DynamicTool::new_with_context(name, "does nothing", schema, move |_, _| {
            Box::pin(async move {
                handler.handle().await;
                Ok(ToolOutput::text(""))
            })
        });
        Ok(Self { server: ToolServer::new().dynamic_tool(tool).run() })
    }

    async fn dispatch(&self, batch: Vec<String>) -> usize {
        let calls = stream::iter(batch).map(|args| async move {
            let mut context = ToolContext::default();
            self.server.execute("nothing", &args, &mut context).await
        });
        let results: Vec<_> = calls.buffered(WIDTH).collect().await;
        std::hint::black_box(results).len()
    }
}

impl Contender for Rig {
    fn name(&self) -> &str {
        "rig's tool server"
    }

    fn work(&self, calls: usize, batches: usize) -> Work {
        let batch = || arguments(calls).iter().map(ToString::to_string).collect::<Vec<_>>();
        let inputs: Vec<_> = (0..batches).map(|_| batch()).collect();
        let me = self.clone();
        Box::pin(async move {
            for input in inputs {
                assert_eq!(me.dispatch(input).await, calls);
            }
        })
    }
}
