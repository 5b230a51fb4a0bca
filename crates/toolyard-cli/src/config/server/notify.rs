//! `[server.notify]`: who is told of each question.

use super::super::{
    section::{Placed, Section},
    variables,
};
use std::{ops::Range, path::Path};
use toolyard::Redactor;
use toolyard_egress::{OriginError, SetupError};
use toolyard_server::{Notify, WebhookSecret};

/// Who is told, and what of that is a secret.
#[derive(Clone)]
pub(crate) struct NotifySettings {
    pub(crate) notify: Notify,
    secrets: Vec<String>,
}

impl NotifySettings {
    /// The redactor with the secrets. One too short to be told from other text is left out.
    pub(super) fn redact(&self, redactor: Redactor) -> Redactor {
        let secrets = self.secrets.iter();
        secrets.fold(redactor, |redactor, secret| redactor.clone().with_secret(secret).unwrap_or(redactor))
    }
}

impl std::fmt::Debug for NotifySettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NotifySettings").field("notify", &self.notify).finish_non_exhaustive()
    }
}

/// Reads the section, which stands at this place. `ca` is relative to `here`.
pub(super) fn read((mut section, at): Placed<Section<'_>>, here: &Path) -> Option<NotifySettings> {
    let (url, secret) = (section.string("url"), section.string("secret"));
    let (link, ca) = (section.string("link"), section.string("ca"));
    let allow_private = section.boolean("allow_private").unwrap_or(false);
    for key in ["url", "secret"] {
        if !section.was_given(key) && !section.is_mistyped(key) {
            section.report(&at, format!("{}{key} is missing", section.prefix()));
        }
    }
    let mut secrets = Vec::new();
    let secret = secret.and_then(|secret| signed_with(&section, secret, &mut secrets));
    let notify = url.zip(secret).and_then(|((url, at), secret)| {
        let url = address(&section, (url, at.clone()), &mut secrets)?;
        let mut notify = Notify::new(url, secret);
        if let Some((link, _)) = link {
            notify = notify.link(link);
        }
        if let Some((file, _)) = ca {
            notify = notify.authorities(here.join(file));
        }
        notify = if allow_private { notify.allow_private() } else { notify };
        checked(&section, &at, notify)
    });
    section.finish();
    notify.map(|notify| NotifySettings { notify, secrets })
}

/// The address. It may be `$NAME`, because some contain a secret.
fn address(section: &Section<'_>, (text, at): Placed<String>, secrets: &mut Vec<String>) -> Option<String> {
    let url = expanded(section, "url", &text, &at)?;
    if text != url {
        secrets.push(url.clone());
    }
    Some(url)
}

/// The secret, which the file never holds.
fn signed_with(
    section: &Section<'_>,
    (text, at): Placed<String>,
    secrets: &mut Vec<String>,
) -> Option<WebhookSecret> {
    if !text.starts_with('$') {
        let what = "secret must not be written here: name an environment variable, \"$NAME\"";
        section.report(&at, format!("{}{what}", section.prefix()));
        return None;
    }
    let secret = expanded(section, "secret", &text, &at)?;
    let read = section.parsed("secret", &at, secret.parse());
    secrets.push(secret.trim().to_owned());
    read
}

fn expanded(section: &Section<'_>, key: &str, text: &str, at: &Range<usize>) -> Option<String> {
    let missing =
        |from: &str| format!("{}{key}: the environment variable {from} is not set", section.prefix());
    variables::expand(text).map_err(|from| section.report(at, missing(from))).ok()
}

fn checked(section: &Section<'_>, at: &Range<usize>, notify: Notify) -> Option<Notify> {
    let Err(error) = notify.check() else { return Some(notify) };
    let advice = match error {
        SetupError::Address(_) => ": set allow_private = true if it is meant to be told",
        SetupError::Origin(OriginError::NoTls(_)) if !cfg!(feature = "https") => {
            ", without the feature https"
        }
        _ => "",
    };
    section.report(at, format!("{}url: {error}{advice}", section.prefix()));
    None
}
