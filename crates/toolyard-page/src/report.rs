//! A report: the page with the events of a log in it, as one file that needs no server.
//!
//! ```text
//!   <meta policy: the hashes of script and style; nothing is loaded>
//!   <script type="application/json"> events </script>      data, which no browser runs
//!   <script> all modules </script>
//! ```

use crate::{
    assets::{REPORT, SHARED, STYLES},
    bundle, policy,
};
use serde::de::IgnoredAny;
use serde_json::json;
use std::{
    collections::VecDeque,
    error::Error,
    fmt,
    io::{self, Write},
};

/// The most bytes of events that a report holds: 64 MiB. More would be slow to open.
pub const EVENT_BYTES_MAX: usize = 64 << 20;

/// A report of an event log, as one HTML file.
///
/// It is bounded: once the events take more than [`EVENT_BYTES_MAX`], which is some 200 000 of them, the oldest ones
/// leave, and the page says how many are missing. Of a log of a million events it shows the newest part.
///
/// # Examples
/// ```
/// let mut report = toolyard_page::Report::new("log.jsonl");
/// report.add(r#"{"v":1,"seq":1,"position":1,"wall_ms":0,"mono_us":5,"session":"run","agent":"root","event":"session.opened"}"#)?;
/// let mut page = Vec::new();
/// report.write(&mut page)?;
/// assert!(page.starts_with(b"<!doctype html>"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Report {
    title: String,
    events: VecDeque<Box<str>>,
    bytes: usize,
    bytes_max: usize,
    left_out: u64,
}

/// A text that is not the JSON object of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAnEvent;

impl fmt::Display for NotAnEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event is a JSON object")
    }
}

impl Error for NotAnEvent {}

impl Report {
    /// An empty report; the title says what it is about, such as the name of the log.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            events: VecDeque::new(),
            bytes: 0,
            bytes_max: EVENT_BYTES_MAX,
            left_out: 0,
        }
    }

    /// Adds an event, as a line of a log has it.
    ///
    /// # Errors
    /// [`NotAnEvent`] if the text is not a JSON object. The report is unchanged then.
    pub fn add(&mut self, event: &str) -> Result<(), NotAnEvent> {
        let event = event.trim();
        if !event.starts_with('{') || serde_json::from_str::<IgnoredAny>(event).is_err() {
            return Err(NotAnEvent);
        }
        let event = within_script(event);
        self.bytes += event.len();
        self.events.push_back(event.into());
        while self.bytes > self.bytes_max {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes -= oldest.len();
            self.left_out += 1;
        }
        Ok(())
    }

    /// How many events it holds.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether it holds no event.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// How many of the oldest events have left it.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Writes the page.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let script = bundle::script(SHARED.iter().chain([&REPORT]));
        let style = STYLES.iter().map(|(_, text)| *text).collect::<String>();
        let policy = policy::of_single_file(&script, &style);
        let about = json!({"title": self.title, "left_out": self.left_out}).to_string();
        write!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
             <title>Toolyard report</title>\n<style>{style}</style>\n</head>\n<body>\n\
             <noscript>This report draws its events with JavaScript, which is switched off here.</noscript>\n\
             <script type=\"application/json\" id=\"about\">{}</script>\n\
             <script type=\"application/json\" id=\"events\">[\n",
            within_script(&about)
        )?;
        for (index, event) in self.events.iter().enumerate() {
            let separator = if index == 0 { "" } else { ",\n" };
            write!(out, "{separator}{event}")?;
        }
        write!(out, "\n]</script>\n<script>{script}</script>\n</body>\n</html>\n")?;
        out.flush()
    }
}

/// A JSON text that can stand in a script element. In JSON, `<` is found in texts alone, where it can be escaped; then
/// nothing can end the element or begin a comment.
fn within_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(report: &Report) -> String {
        let mut page = Vec::new();
        report.write(&mut page).unwrap();
        String::from_utf8(page).unwrap()
    }

    /// The JSON in the element with this id.
    fn data(page: &str, id: &str) -> serde_json::Value {
        let begin = format!("<script type=\"application/json\" id=\"{id}\">");
        let after = page.split_once(&begin).unwrap().1;
        serde_json::from_str(after.split_once("</script>").unwrap().0).unwrap()
    }

    /// A text of a model cannot leave its element, and is the same text once it is read.
    #[test]
    fn texts_stay_in_their_element() {
        let mut report = Report::new("</script><script>alert(1)</script>");
        let evil = json!({"text": "</script><!--<script>", "more": "\u{2028}"});
        report.add(&evil.to_string()).unwrap();
        let page = page(&report);
        assert_eq!(data(&page, "events"), json!([evil]));
        assert_eq!(data(&page, "about")["title"], "</script><script>alert(1)</script>");
        assert_eq!(page.matches("</script").count(), 3);
        assert!(!page.contains("<!--"));
    }

    #[test]
    fn what_is_no_event_is_refused() {
        let mut report = Report::new("");
        for text in ["", "[1]", "{\"a\":1", "{}{}", "]</script>"] {
            assert_eq!(report.add(text), Err(NotAnEvent), "{text}");
        }
        assert!(report.is_empty());
        assert_eq!(data(&page(&report), "events"), json!([]));
    }

    #[test]
    fn the_oldest_events_leave_a_full_report() {
        let mut report = Report { bytes_max: 100, ..Report::new("") };
        for number in 10..60 {
            report.add(&json!({"number": number}).to_string()).unwrap();
        }
        assert_eq!((report.len(), report.left_out()), (7, 43));
        let page = page(&report);
        assert_eq!(data(&page, "events")[6]["number"], 59);
        assert_eq!(data(&page, "about")["left_out"], 43);
    }

    /// The policy names the script and the style of the page, and nothing else may run.
    #[test]
    fn only_its_own_script_may_run() {
        let page = page(&Report::new(""));
        let script = page.rsplit_once("<script>").unwrap().1.split_once("</script>").unwrap().0;
        let style = page.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
        assert!(page.contains(&policy::of_single_file(script, style)));
    }
}
