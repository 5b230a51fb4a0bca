//! Keeps a server's tools in an engine as the server lists them.

use super::definition::{Definitions, Refused};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use toolyard::{BreakerOf, Engine, RegisterError, Registry};

/// The tools of a server that are in an engine: their versions by name.
#[derive(Debug, Default)]
pub(crate) struct Roster(Mutex<Option<Attached>>);

#[derive(Debug)]
struct Attached {
    engine: Engine,
    tools: BTreeMap<String, String>,
}

impl Roster {
    /// Manages an engine's tools from now on. Tools that it was built with are already in it.
    pub(crate) fn attach(&self, engine: &Engine, built_with: &Definitions) {
        let has = |name: &str| engine.registry().has(name);
        let tools = built_with.tools.iter().filter(|tool| has(tool.name()));
        let tools = tools.map(|tool| (tool.name().to_owned(), tool.version().to_owned())).collect();
        *self.0.lock() = Some(Attached { engine: engine.clone(), tools });
    }

    /// Releases the engine, whose tools stay as they are.
    pub(crate) fn detach(&self) {
        *self.0.lock() = None;
    }

    /// Closes the breakers of the server and of its tools.
    pub(crate) fn close_breakers(&self, backend: &str) {
        let attached = self.0.lock();
        let Some(Attached { engine, tools }) = attached.as_ref() else { return };
        let tools = tools.keys().map(|tool| BreakerOf::tool(tool.as_str()));
        for of in std::iter::once(BreakerOf::backend(backend)).chain(tools) {
            engine.reset_breaker(&of);
        }
    }

    /// Makes these the server's tools in the engine. A tool whose name is taken is refused.
    pub(crate) fn sync(&self, definitions: &mut Definitions) {
        let mut attached = self.0.lock();
        let Some(Attached { engine, tools }) = attached.as_mut() else { return };
        let registry = engine.registry();
        let is_listed = |name: &String| definitions.tools.iter().any(|tool| tool.name() == name);
        for name in tools.extract_if(.., |name, _| !is_listed(name)) {
            registry.unregister(&name.0);
        }
        let mut refused = Vec::new();
        for tool in &definitions.tools {
            let is_same = tools.get(tool.name()).is_some_and(|version| version == tool.version());
            if is_same {
                continue;
            }
            match register_or_replace(registry, tool, tools.contains_key(tool.name())) {
                Ok(()) => {
                    tools.insert(tool.name().to_owned(), tool.version().to_owned());
                }
                Err(error) => refused.push(Refused { tool: tool.name().to_owned(), why: error.to_string() }),
            }
        }
        definitions.tools.retain(|tool| refused.iter().all(|refused| refused.tool != tool.name()));
        definitions.refused.extend(refused);
    }
}

fn register_or_replace(
    registry: &Registry,
    tool: &std::sync::Arc<super::remote_tool::RemoteTool>,
    exists: bool,
) -> Result<(), RegisterError> {
    match exists {
        true => registry.replace(tool.clone()),
        false => registry.register(tool.clone()),
    }
}
