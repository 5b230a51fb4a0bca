//! A service that is called for each call.

use super::{
    super::{
        section::{Placed, Section},
        variables::{self, Variable},
    },
    Made,
};
use std::{env, sync::Arc};
use toolyard::{OutputKind, Program, Service};
use toolyard_egress::{Egress, RemoteService, SetupError};

/// Takes what is said of a service at this address.
pub(super) fn take(
    (url, at): Placed<String>,
    section: &mut Section<'_>,
    output: OutputKind,
    output_bytes: usize,
) -> Option<Made> {
    let variables = variables::read(section.section("headers"));
    let mut headers = Vec::with_capacity(variables.len() + 1);
    let mut secrets = Vec::new();
    for Variable { name, value, is_secret } in variables {
        secrets.extend(is_secret.then(|| value.clone()));
        headers.push((name, value));
    }
    if let Some(token) = token(section) {
        headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        secrets.push(token);
    }
    let mut service = Service::new(url);
    (service.headers, service.output, service.output_bytes) = (Arc::from(headers), output, output_bytes);
    service.allow_private = section.boolean("allow_private").unwrap_or_default();
    if let Err(error) = RemoteService::new(&service, &Egress::new()) {
        let advice = match error {
            SetupError::Address(_) => ": set allow_private = true if it is meant to be called",
            _ => "",
        };
        section.report(&at, format!("{}url: {error}{advice}", section.prefix()));
        return None;
    }
    Some(Made { program: Program::Http(service), files: Vec::new(), secrets })
}

/// The bearer token, from the variable that holds it.
fn token(section: &mut Section<'_>) -> Option<String> {
    let (name, at) = section.string("token_env")?;
    match env::var(&name) {
        Ok(token) => Some(token),
        Err(_) => {
            let what = format!("{}token_env: the environment variable {name} is not set", section.prefix());
            section.report(&at, what);
            None
        }
    }
}
