//! `[mock.TOOL]`: what answers the calls of a tool in place of it (KT-10).

use super::{
    duration, json,
    nearest::nearest,
    program,
    section::{Section, TableOrWord, Value},
    tool::SIDE_EFFECTS,
};
use crate::stand_ins::{
    Mock,
    latency::{LATENCY_MAX, Latency},
    mock::Answer,
    template::{DataTemplate, Template, TemplateError},
};
use std::{ops::Range, path::Path, time::Duration};
use toml::de::DeValue;
use toolyard::{SideEffects, ToolErrorKind, ToolSpec};

/// How a mock may fail.
const FAILURES: &[(&str, ToolErrorKind)] = &[
    ("transient", ToolErrorKind::Transient),
    ("execution", ToolErrorKind::Execution),
    ("rate_limited", ToolErrorKind::RateLimited),
    ("timeout", ToolErrorKind::Timeout),
    ("invalid_input", ToolErrorKind::InvalidInput),
    ("permission_denied", ToolErrorKind::PermissionDenied),
    ("output_invalid", ToolErrorKind::OutputInvalid),
];

/// The keys that declare a tool.
const DECLARES: [&str; 3] = ["side_effects", "description", "input_schema"];

/// The widest spread of a lognormal latency.
const SIGMA_MAX: f64 = 3.0;

/// Reads the section; `existing` is the tool of a name that this program has anyway.
pub(super) fn read(
    mut section: Section<'_>,
    here: &Path,
    existing: impl Fn(&str) -> Option<ToolSpec>,
) -> Vec<Mock> {
    let mut mocks = Vec::new();
    for (name, at, inner) in section.sections() {
        program::check_name(&section, &name, &at, &[]);
        let existing = existing(&name);
        mocks.push(mock(name, inner, here, existing));
    }
    section.finish();
    mocks
}

fn mock(name: String, mut section: Section<'_>, here: &Path, existing: Option<ToolSpec>) -> Mock {
    let latency = latency(&mut section).unwrap_or(Latency::Fixed(Duration::ZERO));
    let failure_rate = failure_rate(&mut section);
    let failure = section.choice("failure", FAILURES).map_or(ToolErrorKind::Transient, |(kind, _)| kind);
    let (answer, answer_at) = answer(&mut section);
    let declared = declared(&name, &mut section, here, existing);
    if let Some(at) = answer_at {
        check_arguments(&section, &at, &answer, &declared);
    }
    section.finish();
    Mock { name, latency, failure_rate, failure, answer, declared }
}

/// Reads the declaration of a tool that only the mock has. Without side effects it has none: a mock changes nothing.
fn declared(name: &str, section: &mut Section<'_>, here: &Path, existing: Option<ToolSpec>) -> ToolSpec {
    let effects = section.choice("side_effects", SIDE_EFFECTS);
    let description = section.string("description");
    let schema = section.span_of("input_schema");
    let schema = program::take_schema(section, here).zip(schema);
    let Some(spec) = existing else {
        let spec = ToolSpec::new(name, effects.map_or(SideEffects::None, |(effects, _)| effects));
        let spec = spec.describe(description.map_or_else(|| "A mock".to_owned(), |(text, _)| text));
        return match schema {
            Some((schema, _)) => spec.foreign_schema(schema),
            None => spec,
        };
    };
    let given = [effects.map(|(_, at)| at), description.map(|(_, at)| at), schema.map(|(_, at)| at)];
    for (key, at) in DECLARES.iter().zip(given) {
        if let Some(at) = at {
            let what = "of another tool a mock replaces only what runs, not what it declares";
            section.report(
                &at,
                format!("{}{key}: there is a tool '{name}', and {what}: remove it", section.prefix()),
            );
        }
    }
    spec
}

/// Reads `failure_rate`.
fn failure_rate(section: &mut Section<'_>) -> f64 {
    let at = section.span_of("failure_rate");
    let rate = section.number("failure_rate").unwrap_or_default();
    if let Some(at) = at
        && !(0.0..=1.0).contains(&rate)
    {
        section
            .report(&at, format!("{}failure_rate must be a share from 0 to 1, not {rate}", section.prefix()));
    }
    rate
}

/// Reads `answer` or `answer_json`, with its place.
fn answer(section: &mut Section<'_>) -> (Answer, Option<Range<usize>>) {
    let text = section.string("answer");
    let data = section.take("answer_json");
    if let (Some(_), Some(data)) = (&text, &data) {
        let what = format!("{}has an answer or an answer_json, not both", section.prefix());
        section.report(&data.span(), what);
    }
    if let Some((text, at)) = text {
        let parsed = Template::parse(&text).map(Answer::Text);
        return (parsed_or_empty(section, "answer", &at, parsed), Some(at));
    }
    let Some(data) = data else { return (empty(), None) };
    let at = data.span();
    match json::of(data) {
        Ok(data) => {
            let parsed = DataTemplate::parse(data).map(Answer::Data);
            (parsed_or_empty(section, "answer_json", &at, parsed), Some(at))
        }
        Err((what, at)) => {
            section.report(&at, format!("{}answer_json: {what}", section.prefix()));
            (empty(), None)
        }
    }
}

fn parsed_or_empty(
    section: &Section<'_>,
    key: &str,
    at: &Range<usize>,
    parsed: Result<Answer, TemplateError>,
) -> Answer {
    section.parsed(key, at, parsed).unwrap_or_else(empty)
}

/// What a mock says that is told nothing.
fn empty() -> Answer {
    Answer::Text(Template::parse("ok").expect("a text without braces is a template"))
}

/// Reports arguments that the tool does not have, if it says which it has.
fn check_arguments(section: &Section<'_>, at: &Range<usize>, answer: &Answer, spec: &ToolSpec) {
    let known = spec.input_schema.as_ref().and_then(|schema| schema.get("properties")?.as_object());
    let Some(known) = known else { return };
    for argument in answer.arguments() {
        if !known.contains_key(argument) {
            let nearest = nearest(argument, known.keys().map(String::as_str));
            let key = match answer {
                Answer::Text(_) => "answer",
                Answer::Data(_) => "answer_json",
            };
            let what = format!("{}{key}: the tool has no argument '{argument}'; {nearest}", section.prefix());
            section.report(at, what);
        }
    }
}

/// Reads `latency`.
fn latency(section: &mut Section<'_>) -> Option<Latency> {
    const WANTED: &str = "a duration, or a table with uniform or lognormal";
    let value = section.take("latency")?;
    let at = value.span();
    match section.table_or_word("latency", value, WANTED)? {
        TableOrWord::Word((text, at)) => time(section, "latency", &text, &at).map(Latency::Fixed),
        TableOrWord::Table(mut table) => {
            let uniform = table.take("uniform").and_then(|value| uniform(&table, value));
            let lognormal = table.placed_section("lognormal").and_then(|(inner, at)| lognormal(inner, &at));
            if table.was_given("uniform") == table.was_given("lognormal") && table.is_valid() {
                table.report(&at, format!("{}must be a uniform or a lognormal one", table.prefix()));
            }
            table.finish();
            uniform.or(lognormal)
        }
    }
}

fn uniform(section: &Section<'_>, value: Value<'_>) -> Option<Latency> {
    const WANTED: &str = "must be two durations, the shorter one first, such as [\"10ms\", \"30ms\"]";
    let at = value.span();
    let refuse = || {
        section.report(&at, format!("{}uniform {WANTED}", section.prefix()));
        None
    };
    let DeValue::Array(items) = value.into_inner() else { return refuse() };
    let texts: Option<Vec<&str>> = items.iter().map(|item| item.get_ref().as_str()).collect();
    let Some([least, most]) = texts.as_deref() else { return refuse() };
    let [least, most] = [least, most].map(|text| time(section, "uniform", text, &at));
    match (least?, most?) {
        (least, most) if least <= most => Some(Latency::Uniform(least, most)),
        _ => refuse(),
    }
}

fn lognormal(mut section: Section<'_>, place: &Range<usize>) -> Option<Latency> {
    let (median, sigma_at) = (section.string("median"), section.span_of("sigma"));
    let median = median.and_then(|(text, at)| time(&section, "median", &text, &at));
    let sigma = section.number("sigma");
    if let (Some(sigma), Some(at)) = (sigma, &sigma_at)
        && !(0.0..=SIGMA_MAX).contains(&sigma)
    {
        section.report(at, format!("{}sigma must be from 0 to {SIGMA_MAX}, not {sigma}", section.prefix()));
    }
    let whole = median.zip(sigma);
    if whole.is_none()
        && section.is_valid()
        && !section.is_mistyped("median")
        && !section.is_mistyped("sigma")
    {
        let what =
            format!("{}needs a median and a sigma, such as median = \"20ms\", sigma = 0.5", section.prefix());
        section.report(place, what);
    }
    section.finish();
    whole.map(|(median, sigma)| Latency::Lognormal { median, sigma })
}

/// A time that a call may take.
fn time(section: &Section<'_>, key: &str, text: &str, at: &Range<usize>) -> Option<Duration> {
    let time = section.parsed(key, at, duration::parse(text))?;
    if time > LATENCY_MAX {
        section.report(at, format!("{}{key} must be an hour at most", section.prefix()));
    }
    Some(time)
}
