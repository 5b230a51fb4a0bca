//! Real exchanges with the providers: their responses decode to the calls they meant, and the encoded results
//! have the shape that they accepted.
//!
//! `TOOLYARD_DATA` names the directory of the recordings. If it is absent the tests are skipped, except under
//! `CI=true`, where they fail.

#![expect(clippy::unwrap_used, reason = "a recording that is not as it was is a failed test")]

use serde_json::{Value, json};
use std::collections::BTreeMap;
use toolyard_core::{CallError, ErrorKind, Outcome, Routing, ToolOutput};
use toolyard_wire::{
    Format, Message, SseDecoder, StreamDecoder, build_tool_result_messages, decode, detect, encode,
};

mod accepted;
mod data;

fn format(line: &Value) -> Format {
    match line["provider"].as_str().unwrap() {
        "openai_chat" => Format::OpenAiChat,
        "openai_responses" => Format::OpenAiResponses,
        "anthropic" => Format::Anthropic,
        "gemini" => Format::Gemini,
        other => panic!("a provider without a format: {other}"),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// Events as a server would write them.
fn sse(chunks: &[Value]) -> String {
    chunks.iter().map(|chunk| format!("data: {}\n\n", text(chunk))).collect()
}

/// An outcome for every call; `failed` says which of them are errors.
fn outcomes(message: &Message, failed: impl Fn(usize) -> bool) -> Vec<Outcome> {
    let outcome = |(index, call)| {
        let status = match failed(index) {
            true => Err(CallError::new(ErrorKind::ExecutionError, "it did not work")),
            false => Ok(ToolOutput::text("done")),
        };
        Outcome::new(call, Routing::Read, status)
    };
    message.calls().iter().enumerate().map(outcome).collect()
}

/// The list of results in the value that `encode` returns.
fn results(message: &Message, failed: impl Fn(usize) -> bool) -> Vec<Value> {
    let value = encode(message, &outcomes(message, failed), message.format());
    let list = match message.format() {
        Format::Neutral => &value["results"],
        Format::OpenAiChat | Format::OpenAiResponses => &value,
        Format::Anthropic => &value["content"],
        Format::Gemini => &value["parts"],
    };
    list.as_array().unwrap().clone()
}

/// The id under which a result goes back.
fn id_of(result: &Value) -> &Value {
    ["tool_call_id", "call_id", "tool_use_id"]
        .iter()
        .find_map(|key| result.get(*key))
        .unwrap_or(&result["functionResponse"]["id"])
}

/// Calls as the recordings list them, with the id that would be sent back.
fn calls(message: &Message) -> Value {
    let results = results(message, |_| false);
    let pairs = message.calls().iter().zip(&results);
    let call = |(call, result): (&toolyard_core::Call, _)| json!({"call_id": id_of(result), "name": call.name.as_ref(), "arguments": call.arguments.to_value()});
    pairs.map(call).collect()
}

#[test]
fn every_recorded_answer_decodes_to_its_calls() {
    let Some(lines) = data::lines("provider-responses/recorded.jsonl") else {
        return;
    };
    let (mut exchanges, mut found) = (BTreeMap::<&str, usize>::new(), 0);
    for line in &lines {
        let (id, body, format) = (text(&line["id"]), text(&line["response"]), format(line));
        assert_eq!(detect(body), Ok(format), "{id}");
        let message = decode(body, None).unwrap_or_else(|error| panic!("{id}: {error}"));
        assert_eq!(decode(body, Some(format)).as_ref(), Ok(&message), "{id}");
        assert_eq!(calls(&message), line["expected"]["calls"], "{id}");
        assert!(!message.is_cut(), "{id}");
        *exchanges.entry(format.as_str()).or_default() += 1;
        found += message.calls().len();
    }
    println!("decoded {found} calls of {} exchanges: {exchanges:?}", lines.len());
    assert_eq!(lines.len(), 107);
}

#[test]
fn every_result_has_the_shape_that_the_provider_accepted() {
    let Some(lines) = data::lines("provider-responses/recorded.jsonl") else {
        return;
    };
    let (mut compared, mut errors, mut exchanges) = (0, 0, 0);
    for line in lines.iter().filter(|line| !line["next_request"].is_null()) {
        let (id, format) = (text(&line["id"]), format(line));
        let message = decode(text(&line["response"]), None).unwrap();
        let accepted = accepted::results(&message, &line["next_request"]);
        let ours = results(&message, |index| accepted[index].failed);
        let ours: Vec<Value> = ours.iter().map(|result| accepted::frame(result, format)).collect();
        let theirs: Vec<Value> =
            accepted.iter().map(|theirs| accepted::frame(&theirs.result, format)).collect();
        // Compared as values, because the order of fields is not part of the shape.
        assert_eq!(ours, theirs, "{id}");
        exchanges += 1;
        compared += ours.len();
        errors += accepted.iter().filter(|accepted| accepted.failed).count();
    }
    println!(
        "compared {compared} results of {exchanges} exchanges with accepted ones, {errors} of them errors"
    );
    assert_eq!(exchanges, lines.iter().filter(|line| line.get("next_request").is_some()).count());
}

/// The text of a recorded answer beside its calls, read from the provider's own JSON without the decoder.
fn written(body: &str, format: Format) -> Option<Vec<String>> {
    let body: Value = serde_json::from_str(body).ok()?;
    let list = match format {
        Format::OpenAiChat => {
            return Some(
                body["choices"][0]["message"]["content"].as_str().map(str::to_owned).into_iter().collect(),
            );
        }
        Format::OpenAiResponses => &body["output"],
        Format::Anthropic => &body["content"],
        Format::Gemini => &body["candidates"][0]["content"]["parts"],
        Format::Neutral => return None,
    };
    // The list as it should go back: text and our calls.
    let kept = |entry: &&Value| {
        let kind = entry["type"].as_str().unwrap_or_default();
        let part =
            entry.get("functionCall").is_some() || format == Format::Gemini && entry["thought"] != true;
        matches!(kind, "text" | "tool_use" | "message" | "function_call" | "custom_tool_call") || part
    };
    let text =
        |entry: &Value| entry.get("text").or(entry.get("content")).map(Value::to_string).unwrap_or_default();
    Some(list.as_array()?.iter().filter(kept).map(text).collect())
}

#[test]
fn the_text_of_every_recorded_answer_goes_back_beside_its_calls() {
    let Some(lines) = data::lines("provider-responses/recorded.jsonl") else {
        return;
    };
    let mut texts = 0;
    for line in &lines {
        let (id, body, format) = (text(&line["id"]), text(&line["response"]), format(line));
        let message = decode(body, None).unwrap();
        let built = build_tool_result_messages(&message, &outcomes(&message, |_| false), format).unwrap();
        texts += usize::from(!message.text().is_empty());
        let list = match format {
            Format::OpenAiChat => None,
            Format::OpenAiResponses => Some(built.assistant.clone()),
            Format::Anthropic => built.assistant[0]["content"].as_array().cloned(),
            _ => built.assistant[0]["parts"].as_array().cloned(),
        };
        let text_of = |entry: &Value| {
            entry.get("text").or(entry.get("content")).map(Value::to_string).unwrap_or_default()
        };
        let ours = match &list {
            Some(list) => list.iter().map(text_of).collect(),
            None => built.assistant[0]["content"].as_str().map(str::to_owned).into_iter().collect::<Vec<_>>(),
        };
        let Some(mut theirs) = written(body, format) else { continue };
        theirs.retain(|text| format != Format::OpenAiChat || !text.is_empty());
        assert_eq!(ours, theirs, "{id}");
    }
    println!("{texts} answers have text beside their calls");
    assert!(texts > 10);
}

/// The calls of a stream without recorded expectations. According to the documentation of Vertex AI, a call with
/// `willContinue` is followed by pieces (`partialArgs`), in which a string continues as long as its own
/// `willContinue` is set, and by an empty `functionCall` that ends it; a call without `willContinue` is whole.
fn expected(line: &Value) -> Value {
    match text(&line["id"]) {
        "google-stream-no-args-tool-call" => json!([
            {"call_id": null, "name": "read_theme", "arguments": {}},
            {"call_id": null, "name": "read_screen", "arguments": {"id": "A"}},
            {"call_id": null, "name": "read_screen", "arguments": {"id": "B"}},
            {"call_id": null, "name": "read_screen", "arguments": {"id": "C"}},
        ]),
        _ => line["expected"]["calls"].clone(),
    }
}

#[test]
fn every_stream_decodes_event_by_event_and_as_a_whole() {
    let Some(lines) = data::lines("provider-responses/streams.jsonl") else {
        return;
    };
    let mut found = 0;
    for line in &lines {
        let (id, chunks) = (text(&line["id"]), line["chunks"].as_array().unwrap());
        let message = decode(&sse(chunks), None).unwrap_or_else(|error| panic!("{id}: {error}"));
        assert_eq!(calls(&message), expected(line), "{id}");

        let mut stream = StreamDecoder::new(format(line));
        let given: Vec<_> = chunks.iter().flat_map(|chunk| stream.push(text(chunk)).unwrap()).collect();
        assert_eq!(given, message.calls(), "{id}");
        assert_eq!(stream.finish(), [], "{id}: nothing is left open");
        found += given.len();
    }
    println!("decoded {found} calls of {} streams", lines.len());
    assert_eq!(lines.len(), 6);
}

/// The calls of SSE text read in these pieces, each with the number of the piece that completed it.
fn in_pieces<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<(usize, toolyard_core::Call)> {
    let mut stream = SseDecoder::new(None);
    let mut found = Vec::new();
    for (number, piece) in pieces.enumerate() {
        stream.push(piece).unwrap();
        found.extend(stream.take_calls().into_iter().map(|call| (number, call)));
    }
    stream.finish().unwrap();
    assert_eq!(stream.take_calls(), [], "nothing is left open");
    found
}

/// CL-5: byte by byte, event by event and as a whole.
#[test]
fn every_stream_gives_the_same_calls_in_whatever_pieces_it_comes() {
    let Some(lines) = data::lines("provider-responses/streams.jsonl") else {
        return;
    };
    let mut early = 0;
    for line in &lines {
        let (id, chunks) = (text(&line["id"]), line["chunks"].as_array().unwrap());
        let whole = sse(chunks);
        let calls = decode(&whole, None).unwrap().into_calls();
        let events: Vec<String> = chunks.iter().map(|chunk| sse(std::slice::from_ref(chunk))).collect();
        let by_event = in_pieces(events.iter().map(String::as_bytes));
        let in_ways = [
            in_pieces(whole.as_bytes().chunks(1)),
            in_pieces(whole.as_bytes().chunks(7)),
            in_pieces(std::iter::once(whole.as_bytes())),
        ];
        for found in in_ways.iter().chain([&by_event]) {
            assert!(found.iter().map(|(_, call)| call).eq(&calls), "{id}");
        }
        early += by_event.iter().filter(|(number, _)| number + 1 < events.len()).count();
    }
    println!("{} streams, {early} calls complete before the last event", lines.len());
    assert_eq!(lines.len(), 6);
    assert!(early > 0);
}

/// Where a body may be cut: every place in short ones, about two hundred in long ones.
fn cuts(body: &str) -> impl Iterator<Item = usize> {
    let step = (body.len() / 200).max(1);
    (0..body.len()).step_by(step).filter(|at| body.is_char_boundary(*at))
}

#[test]
fn a_body_that_is_cut_anywhere_is_an_error_or_has_no_call_that_was_not_meant() {
    let Some(recorded) = data::lines("provider-responses/recorded.jsonl") else {
        return;
    };
    let Some(streams) = data::lines("provider-responses/streams.jsonl") else {
        return;
    };
    let streams = streams.iter().map(|line| sse(line["chunks"].as_array().unwrap()));
    let bodies = recorded.iter().map(|line| text(&line["response"]).to_owned());
    let (mut tried, mut read) = (0, 0);
    for body in bodies.chain(streams) {
        let whole = decode(&body, None).unwrap();
        for at in cuts(&body) {
            tried += 1;
            let Ok(cut) = decode(&body[..at], None) else {
                continue;
            };
            read += 1;
            assert!(cut.calls().len() <= whole.calls().len());
            for (call, meant) in cut.calls().iter().zip(whole.calls()) {
                // A call that was cut off must not pass for complete: its text does not parse.
                let broken = serde_json::from_str::<Value>(&call.arguments.to_string()).is_err();
                let same = call.arguments.to_value() == meant.arguments.to_value();
                assert!(same || broken && cut.is_cut(), "{call:?}\n{meant:?}");
            }
        }
    }
    println!("cut {tried} times, {read} of them could still be read");
}
