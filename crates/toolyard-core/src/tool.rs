//! The trait that tools implement, and the factory that makes one per call.

use crate::{
    Form, Layered, Program, Resources, ToolClass, ToolContext, ToolError, ToolLayer, ToolOutput, ToolSpec,
};
use async_trait::async_trait;
use serde_json::Value;
use std::sync::Arc;

/// A tool for a single call, made by its [`ToolFactory`], so it may keep state between `execute` and `cancel`.
///
/// # Examples
/// ```
/// use serde_json::Value;
/// use toolyard_core::{Tool, ToolContext, ToolError, ToolOutput, async_trait};
///
/// struct Shout;
///
/// #[async_trait]
/// impl Tool for Shout {
///     async fn execute(&self, args: &Value, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
///         let text = args["text"].as_str().ok_or_else(|| ToolError::invalid_input("text is missing"))?;
///         Ok(text.to_uppercase().into())
///     }
/// }
/// ```
#[async_trait]
pub trait Tool: Send + Sync {
    /// Does the work. `args` have passed the tool's schema.
    ///
    /// # Errors
    /// [`ToolError`], if the tool has no output.
    ///
    /// # Panics
    /// A panic ends this call as `panic` and affects no other call.
    ///
    /// # Cancel safety
    /// The future is dropped when the attempt times out or is abandoned. A long handler should watch
    /// [`ToolContext::cancelled`] and clean up in time.
    async fn execute(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError>;

    /// The program of a call with these arguments, for a sandbox that executes it in place of [`execute`](Self::execute):
    /// of one of the forms that the tool's [factory](ToolFactory::forms) says it has (SB-1). `None` for a tool that is a
    /// part of this program.
    ///
    /// # Errors
    /// [`ToolError`], if there is no program for these arguments. The tool has then not started.
    fn program(&self, args: &Value) -> Result<Option<Program>, ToolError> {
        let _ = args;
        Ok(None)
    }

    /// Finds out what became of a call with these arguments that was started in an earlier life of the engine and has no
    /// result (JR-6). It must change nothing: it looks. `key` is the idempotency key with which the call ran; `cx` knows the
    /// call and the session's resources, and dispatches nothing.
    ///
    /// Asked when the call's turn is [resumed](https://docs.rs/toolyard/latest/toolyard/struct.Session.html#method.resume),
    /// for at most 30 s, at most three times in all. A panic, and no answer in time, are [`Reconciled::Unknown`].
    ///
    /// # Examples
    /// ```
    /// use serde_json::Value;
    /// use toolyard_core::{Reconciled, Tool, ToolContext, ToolError, ToolOutput, async_trait};
    ///
    /// struct SaveNote;
    ///
    /// #[async_trait]
    /// impl Tool for SaveNote {
    ///     async fn execute(&self, args: &Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
    ///         std::fs::write("note.txt", args["text"].as_str().unwrap_or_default())
    ///             .map_err(|error| ToolError::execution(error.to_string()))?;
    ///         Ok("saved".into())
    ///     }
    ///
    ///     async fn reconcile(&self, args: &Value, _key: Option<&str>, _: &ToolContext) -> Reconciled {
    ///         match std::fs::read_to_string("note.txt") {
    ///             Ok(text) if Some(&*text) == args["text"].as_str() => Reconciled::Done("saved".into()),
    ///             _ => Reconciled::Unknown, // another call may have written it since
    ///         }
    ///     }
    /// }
    /// ```
    async fn reconcile(&self, args: &Value, key: Option<&str>, cx: &ToolContext) -> Reconciled {
        let _ = (args, key, cx);
        Reconciled::Unknown
    }

    /// Asks a running `execute` to stop, in addition to the context's cancel token. May be called any number of times
    /// (SC-5). Returns `true` if it stopped cleanly, `false` if it was done or never started. The engine logs the
    /// answer in the call's span at INFO (`stopped_cleanly`), unless the handler ends before there is one.
    async fn cancel(&self) -> bool {
        false
    }
}

/// What a tool has [found out](Tool::reconcile) about a call that was started and has no result (JR-6).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Reconciled {
    /// It has done its work: this is its result.
    Done(ToolOutput),
    /// It has done nothing so far, and may run again.
    NotDone {
        /// Whether it cannot do its work any more. If not, it counts as unknown while the attempt might still be under way:
        /// until its timeout has passed.
        is_final: bool,
    },
    /// Nobody knows. The call ends as [`Interrupted`](crate::ErrorKind::Interrupted).
    Unknown,
}

/// Makes a fresh [`Tool`] for every call, and describes it.
///
/// [`from_fn`] makes one from a spec and a closure.
pub trait ToolFactory: Send + Sync {
    /// The declaration of the tool. Read once, at registration.
    fn spec(&self) -> ToolSpec;

    /// A fresh tool for one call. A panic here ends that call as `panic`.
    fn create(&self) -> Arc<dyn Tool>;

    /// The forms of the tool, its own first. Read once, at registration, like the spec. A call whose grant none of
    /// them matches ends as `sandbox_error` before it is asked about (SM-1).
    fn forms(&self) -> &[Form] {
        &[Form::Native]
    }

    /// The class of a call with these arguments, if it differs from the declared one (CL-1). `None` or a panic means
    /// the declared class.
    fn class_for(&self, args: &Value) -> Option<ToolClass> {
        let _ = args;
        None
    }

    /// What a call with these arguments would change if it ran now, in a few lines such as a diff (PO-4).
    ///
    /// Shown to the approver. Must not change anything itself. It has 5 s and runs on a blocking thread for blocking
    /// tools, otherwise in a task. A panic counts as `None`.
    fn preview(&self, args: &Value, resources: &Resources) -> Option<String> {
        let _ = (args, resources);
        None
    }

    /// The [layers](ToolLayer) around the tool, the outermost first. Read once, at registration.
    fn layers(&self) -> Vec<Arc<dyn ToolLayer>> {
        Vec::new()
    }

    /// The tool with a layer around it, inside of those that it has (KT-7).
    ///
    /// # Examples
    /// ```
    /// # use serde_json::Value;
    /// # use toolyard_core::{AttemptResult, Next, ToolContext, ToolFactory, ToolLayer, ToolSpec, async_trait};
    /// struct Logged;
    ///
    /// #[async_trait]
    /// impl ToolLayer for Logged {
    ///     async fn attempt(&self, tool: &ToolSpec, _: &Value, _: &ToolContext, next: Next<'_>) -> AttemptResult {
    ///         let result = next.run().await;
    ///         println!("{}: {}", tool.name, if result.is_ok() { "ok" } else { "failed" });
    ///         result
    ///     }
    /// }
    ///
    /// fn logged(tool: impl ToolFactory) -> impl ToolFactory {
    ///     tool.layer(Logged)
    /// }
    /// ```
    fn layer(self, layer: impl ToolLayer + 'static) -> Layered<Self>
    where
        Self: Sized,
    {
        Layered::new(self, Arc::new(layer))
    }
}

impl<F: ToolFactory + ?Sized> ToolFactory for Arc<F> {
    fn spec(&self) -> ToolSpec {
        (**self).spec()
    }

    fn create(&self) -> Arc<dyn Tool> {
        (**self).create()
    }

    fn forms(&self) -> &[Form] {
        (**self).forms()
    }

    fn class_for(&self, args: &Value) -> Option<ToolClass> {
        (**self).class_for(args)
    }

    fn preview(&self, args: &Value, resources: &Resources) -> Option<String> {
        (**self).preview(args, resources)
    }

    fn layers(&self) -> Vec<Arc<dyn ToolLayer>> {
        (**self).layers()
    }
}

/// Makes a factory from a spec and a closure that creates the tool.
///
/// # Examples
/// ```
/// # use serde_json::Value;
/// # use toolyard_core::{Tool, ToolContext, ToolError, ToolOutput, async_trait};
/// # struct Shout;
/// # #[async_trait]
/// # impl Tool for Shout {
/// #     async fn execute(&self, _: &Value, _: &ToolContext) -> Result<ToolOutput, ToolError> { Ok("".into()) }
/// # }
/// use toolyard_core::{ToolFactory, ToolSpec, from_fn};
/// let factory = from_fn(ToolSpec::pure("shout"), || Shout);
/// assert_eq!(factory.spec().name, "shout");
/// ```
pub fn from_fn<T, F>(spec: ToolSpec, make: F) -> impl ToolFactory + use<T, F>
where
    T: Tool + 'static,
    F: Fn() -> T + Send + Sync,
{
    FromFn { spec, make }
}

struct FromFn<F> {
    spec: ToolSpec,
    make: F,
}

impl<T: Tool + 'static, F: Fn() -> T + Send + Sync> ToolFactory for FromFn<F> {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn create(&self) -> Arc<dyn Tool> {
        Arc::new((self.make)())
    }
}
