//! `toolyard token new`: a secret for somebody, and its hash for the configuration.

use crate::{cli::TokenNewArgs, error::Error, exit::Exit};
use serde_json::json;
use toolyard_server::{Scope, SecretHash, new_token};

/// Makes a token and prints it, once.
pub(crate) fn new(args: &TokenNewArgs) -> Result<Exit, Error> {
    let secret = new_token();
    let hash = SecretHash::of(&secret);
    let words: Vec<&str> = args.scopes.iter().copied().map(Scope::as_str).collect();
    if args.json {
        anstream::println!(
            "{}",
            json!({"name": args.name, "token": secret, "sha256": hash.to_string(), "scopes": words})
        );
        return Ok(Exit::Ok);
    }
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    anstream::eprintln!("The token of {}. It is shown this once; give it to nobody else:\n", args.name);
    anstream::println!("{secret}");
    anstream::eprintln!("\nPut this into toolyard.toml:\n");
    anstream::eprintln!(
        "[server.tokens.{}]\nsha256 = \"{hash}\"\nscopes = [{}]",
        args.name,
        quoted.join(", ")
    );
    if args.scopes.contains(&Scope::Call) && args.scopes.contains(&Scope::Approve) {
        anstream::eprintln!(
            "# Its holder would approve its own calls. If that is meant:\n# self_approve = true"
        );
    }
    Ok(Exit::Ok)
}
