//! Functions of the parent as tools.
//!
//! ```text
//!   register ─► ToolSpec ─► registry of the engine
//!   call ─► gate, pools ─► execute ─► tool_invoke ─► parent ─► tool_result, tool_failed ─► output
//!                            │  ▲                     └ tool_calls within it ─► nested batch, on the handler's task
//!                            └──┴ cancelled, dropped ─► tool_cancel
//! ```

use super::{definition::Definition, names::Names, nested::Nested, out::Out, reply::Reply, tell};
use crate::problem::Problem;
use async_trait::async_trait;
use axum::http::StatusCode;
use futures::{StreamExt as _, stream::FuturesUnordered};
use parking_lot::Mutex;
use serde_json::Value;
use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};
use tokio::sync::mpsc;
use tokio_util::task::{TaskTracker, task_tracker::TaskTrackerToken};
use toolyard::{
    Engine, RegisterError, Tool, ToolClass, ToolContext, ToolError, ToolFactory, ToolOutput, ToolSpec,
};

/// How many functions a parent may register.
const FUNCTIONS_MAX: usize = 1_000;

/// How many batches one invocation may have open.
const NESTED_MAX: usize = 64;

/// The functions of a parent, and those of them that run. Cheap to clone.
#[derive(Clone)]
pub(super) struct Functions(Arc<Shared>);

struct Shared {
    engine: Engine,
    out: Out,
    names: Names,
    /// What has to be answered before the end.
    tasks: TaskTracker,
    registered: Mutex<BTreeSet<String>>,
    running: Mutex<Running>,
    last: AtomicU64,
}

#[derive(Default)]
struct Running {
    by_id: HashMap<Arc<str>, Invoked>,
    /// Whether functions are invoked for the parent's own turns alone, since it has said bye.
    is_ending: bool,
    /// Whether nothing is invoked any more, since the parent has gone.
    is_over: bool,
}

/// An invocation, as it is told of what the parent says.
struct Invoked {
    tell: mpsc::UnboundedSender<Told>,
    /// How many batches it has open.
    nested: Arc<AtomicUsize>,
}

/// What an invocation is told.
enum Told {
    Reply(Reply),
    Nested(Nested),
}

impl Functions {
    pub(super) fn new(engine: Engine, out: Out, names: Names, tasks: TaskTracker) -> Self {
        Self(Arc::new(Shared {
            engine,
            out,
            names,
            tasks,
            registered: Mutex::default(),
            running: Mutex::default(),
            last: AtomicU64::new(0),
        }))
    }

    /// Makes a function a tool; one that the parent has registered before is replaced.
    ///
    /// # Errors
    /// A [`Problem`]: the definition cannot be, or another tool has this name.
    pub(super) fn register(&self, definition: Definition) -> Result<(String, ToolClass), Problem> {
        let (spec, engine) = (definition.spec()?, &self.0.engine);
        let name = spec.name.clone();
        let mut registered = self.0.registered.lock();
        let function = Function { spec, functions: self.clone() };
        let done = match registered.contains(&name) {
            true => engine.registry().replace(function),
            false if registered.len() >= FUNCTIONS_MAX => {
                return Err(Problem::too_many(format!(
                    "there are {FUNCTIONS_MAX} functions: take some away"
                )));
            }
            false => engine.registry().register(function),
        };
        done.map_err(|error| match error {
            RegisterError::Duplicate { .. } => Problem::new(StatusCode::CONFLICT, "name_taken", error),
            error => Problem::invalid("/definition", error),
        })?;
        registered.insert(name.clone());
        // The operator's settings may have changed its class.
        let class = engine.registry().get(&name).map(|entry| entry.spec().class());
        let class = class.ok_or_else(|| Problem::not_found(format!("tool '{name}'")))?;
        Ok((name, class))
    }

    /// Takes a function away.
    ///
    /// # Errors
    /// A [`Problem`]: the parent has none of this name.
    pub(super) fn unregister(&self, name: &str) -> Result<(), Problem> {
        match self.0.registered.lock().remove(name) {
            true => {
                self.0.engine.registry().unregister(name);
                Ok(())
            }
            false => Err(Problem::not_found(format!("function '{}' of yours", name.escape_debug()))),
        }
    }

    /// Passes on what the parent says of an invocation. One that has ended hears it no more.
    ///
    /// # Errors
    /// A [`Problem`]: there never was one of this name.
    pub(super) fn reply(&self, call_id: &str, reply: Reply) -> Result<(), Problem> {
        let ends = matches!(reply, Reply::Ended(_));
        let mut running = self.0.running.lock();
        let invoked = match ends {
            true => running.by_id.remove(call_id).map(|invoked| invoked.tell),
            false => running.by_id.get(call_id).map(|invoked| invoked.tell.clone()),
        };
        drop(running);
        match invoked {
            Some(tell) => {
                let _ = tell.send(Told::Reply(reply)); // it may be ending
                Ok(())
            }
            None if self.has_been(call_id) => Ok(()),
            None => Err(no_invocation(call_id)),
        }
    }

    /// Gives an invocation calls to make.
    ///
    /// # Errors
    /// A [`Problem`]: there is none of this name, or it has too many batches open.
    pub(super) fn nest(&self, call_id: &str, make: impl FnOnce(NestedRoom) -> Nested) -> Result<(), Problem> {
        let running = self.0.running.lock();
        let Some(invoked) = running.by_id.get(call_id) else {
            let detail = format!("the invocation '{}' has ended", call_id.escape_debug());
            return Err(match self.has_been(call_id) {
                true => Problem::gone(detail),
                false => no_invocation(call_id),
            });
        };
        if invoked.nested.fetch_add(1, Ordering::Relaxed) >= NESTED_MAX {
            invoked.nested.fetch_sub(1, Ordering::Relaxed);
            return Err(Problem::too_many(format!("an invocation has at most {NESTED_MAX} batches at once")));
        }
        let nested = make(NestedRoom(invoked.nested.clone()));
        let _ = invoked.tell.send(Told::Nested(nested)); // dropped with the rest, it says that it has not run
        Ok(())
    }

    /// Whether an invocation of this name has been told of.
    fn has_been(&self, call_id: &str) -> bool {
        let number = call_id.strip_prefix('i').and_then(|number| number.parse::<u64>().ok());
        number.is_some_and(|number| (1..=self.0.last.load(Ordering::Relaxed)).contains(&number))
    }

    /// The parent has gone: its functions are no tools any more, what runs fails, and nothing is invoked.
    pub(super) fn end(&self) {
        for name in std::mem::take(&mut *self.0.registered.lock()) {
            self.0.engine.registry().unregister(&name);
        }
        let mut running = self.0.running.lock();
        running.is_over = true;
        let ended = std::mem::take(&mut running.by_id);
        drop(running);
        drop(ended); // outside of the lock: each hears that nobody answers
    }

    /// The parent has said bye: functions are invoked for its own turns alone.
    pub(super) fn finish(&self) {
        self.0.running.lock().is_ending = true;
    }

    fn begin(&self, is_own: bool) -> Option<Invocation> {
        let mut running = self.0.running.lock();
        if running.is_over || (running.is_ending && !is_own) {
            return None;
        }
        let call_id: Arc<str> = format!("i{}", self.0.last.fetch_add(1, Ordering::Relaxed) + 1).into();
        let (tell, told) = mpsc::unbounded_channel();
        running.by_id.insert(call_id.clone(), Invoked { tell, nested: Arc::default() });
        let _answered = self.0.tasks.token();
        Some(Invocation { functions: self.clone(), call_id, told, is_open: false, _answered })
    }
}

fn no_invocation(call_id: &str) -> Problem {
    Problem::not_found(format!("invocation '{}'", call_id.escape_debug()))
}

/// The place of a batch among those of its invocation.
pub(super) struct NestedRoom(Arc<AtomicUsize>);

impl Drop for NestedRoom {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One run of a function. Dropping it tells the parent to stop.
struct Invocation {
    functions: Functions,
    call_id: Arc<str>,
    told: mpsc::UnboundedReceiver<Told>,
    /// Whether the parent runs it and has not been told to stop.
    is_open: bool,
    /// Keeps the conversation until it has ended.
    _answered: TaskTrackerToken,
}

impl Invocation {
    /// Tells the parent to stop.
    fn cancel(&mut self) {
        if std::mem::take(&mut self.is_open) {
            self.functions.0.out.tell_now(tell::cancel(&self.call_id));
        }
    }
}

impl Drop for Invocation {
    fn drop(&mut self) {
        let ended = self.functions.0.running.lock().by_id.remove(&self.call_id);
        drop(ended); // outside of the lock
        self.cancel();
    }
}

/// A function of the parent as a tool.
struct Function {
    spec: ToolSpec,
    functions: Functions,
}

impl ToolFactory for Function {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn create(&self) -> Arc<dyn Tool> {
        Arc::new(Invoke(self.functions.clone()))
    }
}

/// One call of a function.
struct Invoke(Functions);

#[async_trait]
impl Tool for Invoke {
    async fn execute(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let shared = &self.0.0;
        let turn = shared.names.find(cx.session(), cx.turn());
        let mut invocation = self.0.begin(turn.is_some()).ok_or_else(|| gone().no_side_effect())?;
        let line = tell::invoke(&invocation.call_id, args, cx, turn.as_deref());
        tokio::select! {
            biased;
            told = shared.out.tell(line) => told.map_err(|_| gone().no_side_effect())?,
            // The parent has not heard of it.
            () = cx.cancelled() => return Err(ToolError::cancelled("Cancelled before it started").no_side_effect()),
        }
        invocation.is_open = true;
        let mut nested = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                told = invocation.told.recv() => match told {
                    Some(Told::Reply(Reply::Ended(ended))) => {
                        invocation.is_open = false;
                        return *ended;
                    }
                    Some(Told::Reply(Reply::Delta(text))) => cx.emit(&text),
                    // On this task, so that the call waits without its permits (CC-6).
                    Some(Told::Nested(batch)) => nested.push(batch.run(cx)),
                    None => {
                        invocation.is_open = false;
                        return Err(gone().outcome_unknown());
                    }
                },
                () = cx.cancelled(), if invocation.is_open => invocation.cancel(),
                Some(()) = nested.next() => {}
            }
        }
    }
}

fn gone() -> ToolError {
    ToolError::execution("The program that has this function has gone")
}
