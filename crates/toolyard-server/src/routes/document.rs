//! `/openapi.json`: made of the code that answers.

use crate::{
    access::{Caller, Scope},
    app::App,
    problem::Problem,
};
use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use serde::Serialize;
use std::{collections::BTreeMap, sync::Arc};
use utoipa::{
    IntoResponses, ToSchema,
    openapi::{
        ContentBuilder, OpenApi, Ref, RefOr, Response as Described, ResponseBuilder, SecurityRequirement,
        schema::ComponentsBuilder,
        security::{Http, HttpAuthScheme, SecurityScheme},
    },
};

/// An error, as every request may have (RFC 9457).
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
#[allow(dead_code, reason = "it describes what problem.rs writes")]
pub(super) struct ProblemBody {
    /// `urn:toolyard:problem:` and the code.
    r#type: String,
    /// The status in words.
    title: String,
    /// The status.
    status: u16,
    /// Which problem it is, for programs.
    code: String,
    /// What is wrong and what to do, for people.
    detail: String,
}

/// What any request may be answered.
pub(super) struct Common;

impl IntoResponses for Common {
    fn responses() -> BTreeMap<String, RefOr<Described>> {
        let statuses = [
            ("400", "The request cannot be read"),
            ("401", "There is no token, or an unknown one"),
            ("403", "The token's scopes do not include this, or the request comes from elsewhere"),
            ("404", "There is no such resource, or not for this token"),
            ("408", "The body took too long to arrive"),
            ("409", "The state of the resource does not allow this"),
            ("410", "The resource was there and is kept no longer"),
            ("413", "The body is too large"),
            ("415", "The body has another type"),
            ("422", "A value cannot be: `errors` says which"),
            ("429", "There are too many: try again later"),
            ("500", "The request broke off without an answer"),
            ("503", "The server is shutting down, or has no room at this moment"),
        ];
        statuses.into_iter().map(|(status, what)| (status.to_owned(), problem(what).into())).collect()
    }
}

fn problem(what: &str) -> Described {
    let body = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    ResponseBuilder::new().description(what).content("application/problem+json", body).build()
}

/// Adds what the routes do not say: who is asked for, and how.
pub(super) fn complete(api: &mut OpenApi) {
    api.info.title = "Toolyard".to_owned();
    api.info.description =
        Some("Sessions, turns and confirmations of an engine that runs tool calls.".to_owned());
    api.info.version = env!("CARGO_PKG_VERSION").to_owned();
    let schemas = api.components.take().unwrap_or_default().schemas;
    let problem = ("Problem", <ProblemBody as utoipa::PartialSchema>::schema());
    let components = ComponentsBuilder::new().schemas_from_iter(schemas).schemas_from_iter([problem]);
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    api.components = Some(components.security_scheme("token", bearer).build());
    api.security = Some(vec![SecurityRequirement::new("token", Vec::<String>::new())]);
}

/// Gives the document.
pub(super) async fn show(
    caller: Caller,
    State(_): State<App>,
    api: Arc<String>,
) -> Result<Response, Problem> {
    caller.needs(&Scope::ALL)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], api.as_str().to_owned()).into_response())
}
