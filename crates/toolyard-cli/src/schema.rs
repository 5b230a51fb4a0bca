//! `toolyard schema`: JSON Schemas of what the program reads and writes, for editors (KT-15).
//!
//! The configuration is read key by key and has no types that a schema could be derived from, so that the schemas are
//! files. The tests ask the reader for the keys that it knows, and compare.

use crate::{
    cli::{SchemaArgs, SchemaName},
    error::Error,
    exit::Exit,
    run::results,
};

/// Prints a schema.
pub(crate) fn schema(args: &SchemaArgs) -> Result<Exit, Error> {
    let text = match args.name {
        SchemaName::Config => include_str!("../schemas/config.schema.json"),
        SchemaName::Neutral => include_str!("../schemas/neutral.schema.json"),
        SchemaName::Episodes => include_str!("../schemas/episodes.schema.json"),
        SchemaName::Report => include_str!("../schemas/report.schema.json"),
    };
    results::print_text(text)?;
    Ok(Exit::Ok)
}
