//! A registered tool, with everything that is computed once per tool.

use super::guard::{Guard, Guards};
use super::{layers::Layers, name, registry::RegisterError, schema::Schema};
use crate::tasks::{Contained, caught};
use serde_json::Value;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use toolyard_core::{Form, Resources, SchemaOrigin, Tool, ToolClass, ToolFactory, ToolLayer, ToolSpec};
use toolyard_redact::Redactor;

/// A registered tool.
pub struct ToolEntry {
    name: Arc<str>,
    version: Arc<str>,
    spec: ToolSpec,
    forms: Box<[Form]>,
    schema: Schema,
    factory: Contained<Arc<dyn ToolFactory>>,
    attempt_timeout: Duration,
    class: ToolClass,
    /// The layers around it, the outermost first; `None` without any.
    layers: Option<Box<Layers>>,
    /// Shared with the entries it replaced, if their guards have the same settings.
    guard: Arc<Guard>,
    /// Shared with the entries it replaced, which are retired together with it.
    retired: Arc<AtomicBool>,
}

impl ToolEntry {
    /// Makes an entry of this spec, to which settings may have been applied already.
    pub(crate) fn new(
        factory: Arc<dyn ToolFactory>,
        spec: ToolSpec,
        guards: &Guards,
        outer: &[Arc<dyn ToolLayer>],
    ) -> Result<Self, RegisterError> {
        let name = spec.name.as_str();
        if !name::is_valid(name) {
            return Err(RegisterError::Name { name: name.to_owned() });
        }
        spec.check().map_err(|why| RegisterError::Setting { name: name.to_owned(), why })?;
        if spec.settings.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(RegisterError::Zero { name: name.to_owned(), field: "timeout" });
        }
        let forms: Box<[Form]> = factory.forms().into();
        if forms.is_empty() {
            return Err(RegisterError::NoForm { name: name.to_owned() });
        }
        let compiled = match spec.schema_origin {
            SchemaOrigin::Own => Schema::compile(&spec.schema()),
            SchemaOrigin::Foreign => Schema::compile_foreign(&spec.schema()),
            SchemaOrigin::Typed => Schema::compile_typed(&spec.schema()),
        };
        let schema = compiled.map_err(|source| RegisterError::Schema { name: name.to_owned(), source })?;
        Ok(Self {
            name: name.into(),
            version: spec.version.as_str().into(),
            schema,
            forms,
            layers: Layers::of(outer, factory.layers()),
            factory: Contained::new(factory),
            attempt_timeout: spec.attempt_timeout(),
            class: spec.class(),
            guard: Arc::new(guards.guard(&spec)),
            spec,
            retired: Arc::default(),
        })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn shared_name(&self) -> Arc<str> {
        self.name.clone()
    }

    pub(crate) fn shared_version(&self) -> Arc<str> {
        self.version.clone()
    }

    /// Whether this is its name, and not one that only reads the same.
    pub(crate) fn has_name(&self, name: &Arc<str>) -> bool {
        Arc::ptr_eq(&self.name, name)
    }

    /// The same of its version.
    pub(crate) fn has_version(&self, version: &Arc<str>) -> bool {
        Arc::ptr_eq(&self.version, version)
    }

    /// The spec in force, settings included.
    pub fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// The forms of the tool, its own first.
    pub fn forms(&self) -> &[Form] {
        &self.forms
    }

    /// The compiled schema.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The breakers, retries and rate of the tool.
    pub(crate) fn guard(&self) -> &Arc<Guard> {
        &self.guard
    }

    pub(crate) fn attempt_timeout(&self) -> Duration {
        self.attempt_timeout
    }

    /// The class of a call with these arguments (CL-1): the tool's own answer, or its declared class if it gives none
    /// or panics. A recursive tool is always concurrent (CL-2).
    #[inline]
    pub(crate) fn class_for(&self, args: &Value, redactor: Option<&Redactor>) -> ToolClass {
        if self.spec.recursive {
            return ToolClass::Concurrent;
        }
        let classified = caught(|| self.factory.class_for(args)).unwrap_or_else(|panic| {
            let what = "a tool panicked when it was asked for the class of a call; it has the declared one";
            panic.log(what, Some(self.name()), redactor);
            None
        });
        classified.unwrap_or(self.class)
    }

    /// Why a call of this tool has this class, in a few words.
    pub fn why(&self, class: ToolClass) -> String {
        let spec = &self.spec;
        match class {
            _ if spec.recursive => "it spawns sub-agents".to_owned(),
            class if class != self.class => "by its arguments".to_owned(),
            ToolClass::Read => format!("side effects: {}", spec.side_effects),
            ToolClass::Concurrent => format!("side effects: {}, promoted", spec.side_effects),
            ToolClass::Serial => format!("side effects: {}, not promoted", spec.side_effects),
        }
    }

    /// The layers around it, if there are any.
    #[inline(always)]
    pub(crate) fn layers(&self) -> Option<&Layers> {
        self.layers.as_deref()
    }

    /// Makes a fresh tool for one call.
    pub(crate) fn create(&self) -> Arc<dyn Tool> {
        self.factory.create()
    }

    /// What a call with these arguments would change; `None` if the tool does not say or panics.
    pub(crate) fn preview(
        &self,
        args: &Value,
        resources: &Resources,
        redactor: Option<&Redactor>,
    ) -> Option<String> {
        caught(|| self.factory.preview(args, resources)).unwrap_or_else(|panic| {
            let what = "a tool panicked when it was asked what a call would change";
            panic.log(what, Some(self.name()), redactor);
            None
        })
    }

    /// Makes this entry the successor of `old`: they are retired together.
    pub(crate) fn in_place_of(self, old: &Self) -> Self {
        let guard =
            if self.guard.has_same_settings(&old.guard) { old.guard.clone() } else { self.guard.clone() };
        Self { retired: old.retired.clone(), guard, ..self }
    }

    /// The tool has been removed, so calls that wait for it must not start.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    #[inline]
    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }
}

impl fmt::Debug for ToolEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolEntry")
            .field("name", &self.name)
            .field("class", &self.class)
            .finish_non_exhaustive()
    }
}
