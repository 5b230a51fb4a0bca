//! The files of the page, as they lie in `assets/`.

/// A file of the page.
///
/// # Examples
/// ```
/// let page = toolyard_page::asset("/").unwrap();
/// assert_eq!(page.content_type, "text/html; charset=utf-8");
/// assert!(page.body.contains("/page/js/live.js"));
/// assert!(toolyard_page::asset("/page/no-such-file").is_none());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asset {
    /// The value of its `Content-Type`.
    pub content_type: &'static str,
    /// Its text.
    pub body: &'static str,
}

/// The file that a server sends for this path of an address: `/`, or a path under `/page/`.
///
/// The answer must have [`PAGE_POLICY`](crate::PAGE_POLICY). See [`Asset`] for an example.
pub fn asset(path: &str) -> Option<Asset> {
    if path == "/" {
        return Some(html(INDEX));
    }
    let name = path.strip_prefix("/page/")?;
    if name == "icon.svg" {
        return Some(Asset { content_type: "image/svg+xml", body: ICON });
    }
    let of = |files: &[(&str, &'static str)], folder: &str| {
        let name = name.strip_prefix(folder)?;
        files.iter().find(|(file, _)| *file == name).map(|(_, body)| *body)
    };
    if let Some(body) = of(STYLES, "css/") {
        return Some(Asset { content_type: "text/css; charset=utf-8", body });
    }
    let body = of(SHARED, "js/").or_else(|| of(LIVE, "js/"))?;
    Some(Asset { content_type: "text/javascript; charset=utf-8", body })
}

fn html(body: &'static str) -> Asset {
    Asset { content_type: "text/html; charset=utf-8", body }
}

const INDEX: &str = include_str!("../assets/index.html");
const ICON: &str = include_str!("../assets/icon.svg");

/// The names and texts of files in a folder of `assets/`.
macro_rules! files {
    ($folder:literal: $($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../assets/", $folder, "/", $name)))),*]
    };
}

/// The style sheets, in the order in which they apply.
pub(crate) const STYLES: &[(&str, &str)] = files!("css":
    "tokens.css", "frame.css", "controls.css", "outline.css", "timeline.css", "details.css", "now.css", "questions.css",
);

/// The modules that the live page and reports share. Each imports only from those before it.
pub(crate) const SHARED: &[(&str, &str)] = files!("js":
    "el.js", "units.js", "call.js", "runs.js", "log.js", "segments.js", "reasons.js", "scale.js", "list.js", "marks.js", "bars.js",
    "patterns.js", "controls.js", "theme.js", "brand.js", "tip.js", "filter.js", "figures.js", "json.js",
    "overview.js", "timeline.js", "turn-view.js", "details.js", "outline.js", "turns.js",
);

/// The module that opens a report.
pub(crate) const REPORT: (&str, &str) = ("report.js", include_str!("../assets/js/report.js"));

/// The modules of the live page alone.
const LIVE: &[(&str, &str)] = files!("js":
    "api.js", "stream.js", "desk.js", "diff.js", "question-sheet.js", "questions.js", "waiting.js", "pool.js",
    "limits.js", "now.js", "frame.js", "results.js", "live.js",
);

#[cfg(test)]
mod tests {
    use super::*;

    /// The page loads only what the server has, and from nowhere else.
    #[test]
    fn every_address_in_the_page_is_an_asset() {
        let addresses = INDEX.split(['"']).filter(|text| text.starts_with('/'));
        let missing: Vec<&str> = addresses.filter(|path| asset(path).is_none()).collect();
        assert_eq!(missing, Vec::<&str>::new());
        assert!(!INDEX.contains("http"));
    }

    #[test]
    fn every_module_that_is_imported_is_an_asset() {
        for (name, text) in SHARED.iter().chain(LIVE) {
            let imports = text.split("from \"./").skip(1).filter_map(|after| after.split('"').next());
            for import in imports {
                assert!(asset(&format!("/page/js/{import}")).is_some(), "{name} imports {import}");
            }
        }
    }

    /// Texts of models are never markup: no file uses what would parse them.
    #[test]
    fn nothing_parses_text_as_markup() {
        for (name, text) in SHARED.iter().chain(LIVE).chain([&REPORT]) {
            for sink in
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"]
            {
                assert!(!text.contains(sink), "{name} uses {sink}");
            }
        }
    }
}
