//! The child's tools. They write what they do to a file outside of the journal, and say on stdout when they start.

use crate::{asking::Consents, plan::Kind};
use serde_json::{Value, json};
use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use toolyard::{
    Call, Reconciled, Tool, ToolContext, ToolError, ToolFactory, ToolOutput, async_trait, from_fn,
};
use toolyard_journal::Durability;

/// Writes a line to stdout at once. If nobody reads any more, this process is being killed.
pub(crate) fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    drop(stdout.write_all(format!("{line}\n").as_bytes()).and_then(|()| stdout.flush()));
}

/// Gives others a turn, or time.
pub(crate) async fn pause(length: u64) {
    match length {
        0 => tokio::task::yield_now().await,
        length => tokio::time::sleep(Duration::from_micros(300 * length)).await,
    }
}

/// What tools have done: a line for each effect.
#[derive(Clone)]
pub(crate) struct Effects {
    path: PathBuf,
    file: Arc<File>,
    /// Of a journal that does without, an effect is not synced either: it survives the same.
    is_synced: bool,
}

impl Effects {
    pub(crate) fn open(path: &Path, durability: Durability) -> Self {
        let file = OpenOptions::new().append(true).create(true).open(path).unwrap();
        Self { path: path.to_owned(), file: Arc::new(file), is_synced: durability == Durability::Full }
    }

    fn add(&self, kind: Kind, id: &str, key: Option<&str>, request: &str, note: &str) {
        let line = format!("{} {id} {} {request} {note}\n", kind.name(), key.unwrap_or("-"));
        (&*self.file).write_all(line.as_bytes()).unwrap();
        if self.is_synced {
            self.file.sync_data().unwrap();
        }
    }

    fn has(&self, id: &str) -> bool {
        let lines = std::fs::read_to_string(&self.path).unwrap();
        lines.lines().any(|line| line.split(' ').nth(1) == Some(id))
    }
}

struct Working {
    kind: Kind,
    effects: Effects,
    consents: Consents,
}

/// A tool of this kind.
pub(crate) fn tool(kind: Kind, effects: &Effects, consents: &Consents) -> impl ToolFactory + use<> {
    let (effects, consents) = (effects.clone(), consents.clone());
    from_fn(kind.spec(), move || Working { kind, effects: effects.clone(), consents: consents.clone() })
}

/// What a call of this id returns.
pub(crate) fn done(id: &str) -> String {
    format!("did {id}")
}

#[async_trait]
impl Tool for Working {
    async fn execute(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let id = cx.call_id().as_str();
        let request = self.consents.of(cx.call_id()).map_or("-".to_owned(), |request| request.to_string());
        if self.kind.asks() {
            say(&format!("under {id} {request}"));
        }
        say(&format!("start {id}"));
        pause(args["before"].as_u64().unwrap_or(0)).await;
        if u64::from(cx.attempt()) <= args["harmless"].as_u64().unwrap_or(0) {
            say(&format!("no {id}"));
            return Err(ToolError::transient("busy").no_side_effect());
        }
        if args["fails"] == json!(true) {
            return Err(ToolError::execution("this one fails"));
        }
        if self.kind == Kind::Nest {
            let inner = |(at, kind): (usize, Kind)| Call::new(format!("{id}/{at}"), kind.name(), json!({}));
            let kinds = [Kind::Save, Kind::Look, Kind::Checked];
            cx.dispatch(kinds.into_iter().enumerate().map(inner).collect::<Vec<_>>()).await;
        }
        let note = args["note"].as_str().unwrap_or("-");
        self.effects.add(self.kind, id, cx.idempotency_key(), &request, note);
        pause(args["after"].as_u64().unwrap_or(0)).await;
        Ok(ToolOutput::text(done(id)))
    }

    /// Whoever asks is another life: this one's effects are all there, and none comes later.
    async fn reconcile(&self, _: &Value, _: Option<&str>, cx: &ToolContext) -> Reconciled {
        let id = cx.call_id().as_str();
        match self.kind {
            kind if kind.is_checked() && self.effects.has(id) => Reconciled::Done(done(id).into()),
            kind if kind.is_checked() => Reconciled::NotDone { is_final: true },
            _ => Reconciled::Unknown,
        }
    }
}
