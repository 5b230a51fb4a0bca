//! Reads a JSON report of `run`.

use crate::{error::Error, input::Origin};
use serde::Deserialize;
use std::{collections::BTreeMap, io::Read, path::Path};

/// The longest file that is read. A report of 100 000 episodes has some 20 MiB.
const BYTES_MAX: u64 = 256 << 20;

/// What is compared of a report.
#[derive(Debug, Deserialize)]
pub(super) struct RunReport {
    pub(super) calls: u64,
    pub(super) failed: u64,
    pub(super) wall_ms: f64,
    pub(super) calls_per_s: Option<f64>,
    pub(super) episodes_per_s: Option<f64>,
    pub(super) at_once: AtOnce,
    pub(super) tools: BTreeMap<String, Tool>,
}

#[derive(Debug, Deserialize)]
pub(super) struct AtOnce {
    pub(super) average: Option<f64>,
}

/// What is compared of a tool.
#[derive(Debug, Deserialize)]
pub(super) struct Tool {
    pub(super) calls: u64,
    pub(super) failed: u64,
    pub(super) calls_per_s: Option<f64>,
    pub(super) ran_ms: Option<Percentiles>,
    pub(super) queued_ms: Option<Percentiles>,
}

/// Times in milliseconds.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Percentiles {
    pub(super) p50: f64,
    pub(super) p95: f64,
    pub(super) p99: f64,
}

impl RunReport {
    /// Reads a file. The program may have told of errors of its own around the report, on lines of their own.
    ///
    /// # Errors
    /// [`Error::Input`] if it cannot be read, or is no report of this version.
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let origin = Origin::File(path.to_owned());
        let mut text = String::new();
        let reader = origin.reader()?;
        reader.take(BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| origin.unreadable(&error))?;
        if text.len() as u64 > BYTES_MAX {
            return Err(origin.error(format_args!(
                "is longer than {BYTES_MAX} bytes, so it is no report of toolyard run"
            )));
        }
        let is_of_report = |line: &&str| !line.starts_with("toolyard: ");
        let text: String = text.split_inclusive('\n').filter(is_of_report).collect();
        serde_json::from_str(&text).map_err(|error| {
            origin.error(format_args!(
                "is no JSON report of this version ({error}): make one with toolyard run … --report json 2> FILE"
            ))
        })
    }
}
