//! An output as fields of an outcome.

use crate::{
    FieldError,
    fields::{Reader, wrong},
};
use serde_json::{Map, Value};
use std::time::Duration;
use toolyard_core::{Content, ToolOutput, Usage};

/// Writes an output. A reader finds text in `output` or data; `content` only where that is not all the model reads.
pub(super) fn write(output: &ToolOutput, put: &mut impl FnMut(&str, Value) -> Option<Value>) {
    let value = output.to_value();
    let data_are_text = output.has_structured() && value.is_string();
    let says_it_all = match output.content.as_slice() {
        [] => output.has_structured() && !data_are_text,
        [Content::Text { .. }] => !output.has_structured(),
        _ => false,
    };
    if data_are_text {
        put("structured", value.clone());
    }
    put("output", value);
    if !says_it_all {
        put("content", parts(&output.content));
    }
    facts(output, put);
}

/// Writes what a tool tells of its call, which is not for the model.
pub(crate) fn facts(output: &ToolOutput, put: &mut impl FnMut(&str, Value) -> Option<Value>) {
    if !output.files_modified().is_empty() {
        put("files_modified", output.files_modified().into());
    }
    if let Some(command) = output.command_executed() {
        put("command_executed", command.into());
    }
    if let Some(metadata) = output.all_metadata() {
        put("metadata", Value::Object(metadata.clone()));
    }
    if let Some(usage) = output.usage() {
        // Numbers alone, whose serialisation cannot fail.
        put("usage", serde_json::to_value(usage).unwrap_or_default());
    }
}

/// Writes the parts that the model reads.
fn parts(content: &[Content]) -> Value {
    // Content consists of strings alone, so its serialisation cannot fail.
    content.iter().map(|part| serde_json::to_value(part).unwrap_or_default()).collect()
}

/// Takes the output of a call that succeeded.
pub(super) fn take(reader: &mut Reader) -> Result<ToolOutput, FieldError> {
    let value = reader.must("output", Reader::any)?;
    let data = reader.value("structured");
    let content = content(reader)?;
    let output = match (data, value) {
        (None, Value::String(text)) => {
            ToolOutput::parts(content.unwrap_or_else(|| vec![Content::text(text)]))
        }
        (data, value) => {
            ToolOutput::parts(content.unwrap_or_default()).with_structured(data.unwrap_or(value))
        }
    };
    with_facts(output, reader)
}

/// Takes the output that stands in an error: all fields may be missing.
pub(super) fn take_of_error(reader: &mut Reader) -> Result<ToolOutput, FieldError> {
    let data = reader.value("structured");
    let mut output = ToolOutput::parts(content(reader)?.unwrap_or_default());
    if let Some(data) = data {
        output = output.with_structured(data);
    }
    with_facts(output, reader)
}

fn content(reader: &mut Reader) -> Result<Option<Vec<Content>>, FieldError> {
    reader.list("content", usize::MAX, |name, value| {
        let error = wrong(name, "a part, {type: text, text} or {type: image, media_type, data}", &value);
        serde_json::from_value(value).map_err(|_| error)
    })
}

fn with_facts(mut output: ToolOutput, reader: &mut Reader) -> Result<ToolOutput, FieldError> {
    let files = reader.list("files_modified", usize::MAX, |name, value| match value {
        Value::String(file) => Ok(file),
        other => Err(wrong(name, "a string", &other)),
    })?;
    for file in files.into_iter().flatten() {
        output = output.with_file_modified(file);
    }
    if let Some(command) = reader.any_text("command_executed")? {
        output = output.with_command_executed(command);
    }
    for (key, value) in metadata(reader)? {
        output = output.with_metadata(key, value);
    }
    Ok(match usage(reader)? {
        Some(usage) => output.with_usage(usage),
        None => output,
    })
}

fn usage(reader: &mut Reader) -> Result<Option<Usage>, FieldError> {
    let Some(mut reader) = reader.object("usage")? else { return Ok(None) };
    let number =
        |reader: &mut Reader, key: &str| reader.whole(key, 0..=u64::MAX, "a whole number, at least 0");
    let mut usage = Usage::lasting(Duration::from_millis(reader.must("wall_ms", number)?));
    usage.cpu_ms = number(&mut reader, "cpu_ms")?;
    usage.memory_peak_bytes = number(&mut reader, "memory_peak_bytes")?;
    usage.net_connections = number(&mut reader, "net_connections")?;
    usage.net_up_bytes = number(&mut reader, "net_up_bytes")?;
    usage.net_down_bytes = number(&mut reader, "net_down_bytes")?;
    Ok(Some(usage))
}

fn metadata(reader: &mut Reader) -> Result<Map<String, Value>, FieldError> {
    Ok(reader.object("metadata")?.map(Reader::rest).unwrap_or_default())
}
