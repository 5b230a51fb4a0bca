//! A WebAssembly module that is run for each call.

use super::{
    super::{
        section::{Placed, Section},
        variables::{self, Variable},
    },
    Made, in_configuration,
};
use crate::modules;
use std::path::Path;
use toolyard::{Module, OutputKind, Program};

/// Takes what is said of a module in this file.
pub(super) fn take(
    placed: &Placed<String>,
    section: &mut Section<'_>,
    here: &Path,
    output: OutputKind,
    output_bytes: usize,
) -> Option<Made> {
    let variables = variables::read(section.section("env"));
    let arguments = section.strings("args").unwrap_or_default();
    if !modules::EXIST {
        let what = format!(
            "{}wasm: this toolyard cannot run modules: build it with the feature 'wasm'",
            section.prefix()
        );
        section.report(&placed.1, what);
        return None;
    }
    let file = in_configuration(here, placed);
    if !file.is_file() {
        section.report(&placed.1, format!("{}wasm: there is no file '{}'", section.prefix(), file.display()));
        return None;
    }
    let secrets =
        variables.iter().filter(|variable| variable.is_secret).map(|variable| variable.value.clone());
    let secrets = secrets.collect();
    let mut module = Module::new(file.clone());
    module.arguments = arguments.into_iter().map(|(argument, _)| argument).collect();
    for Variable { name, value, .. } in variables {
        module = module.variable(name, value);
    }
    (module.output, module.output_bytes) = (output, output_bytes);
    Some(Made { program: Program::Wasm(module), files: vec![file], secrets })
}
