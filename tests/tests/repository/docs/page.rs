//! A page in Markdown: where it links to, and which anchors it has.

use std::collections::HashMap;

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};

/// What a page links to, and where it can be linked to.
pub(crate) struct Page {
    /// The targets of links and pictures, as they are written.
    pub links: Vec<String>,
    /// The anchors of the headings.
    pub anchors: Vec<String>,
}

impl Page {
    /// Parses a page. Links in raw HTML count as broken, because the site does not adjust them.
    pub(crate) fn read(text: &str) -> Self {
        let mut page = Self { links: Vec::new(), anchors: Vec::new() };
        let mut heading: Option<String> = None;
        let mut seen = HashMap::new();
        for event in Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
            match event {
                Event::Start(Tag::Link { link_type, dest_url, .. }) => {
                    assert_ne!(link_type, LinkType::Email, "{dest_url}");
                    page.links.push(dest_url.into_string());
                }
                Event::Start(Tag::Image { dest_url, .. }) => {
                    page.links.push(dest_url.into_string());
                }
                Event::Html(html) | Event::InlineHtml(html)
                    if html.contains("href=") || html.contains("src=") =>
                {
                    page.links.push(format!("html:{html}"));
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::Text(text) | Event::Code(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                Event::End(TagEnd::Heading(_)) => {
                    let slug = slug(&heading.take().unwrap_or_default());
                    let count = seen.entry(slug.clone()).or_insert(0_u32);
                    page.anchors.push(if *count == 0 { slug } else { format!("{slug}-{count}") });
                    *count += 1;
                }
                _ => {}
            }
        }
        page
    }
}

/// The anchor that both Git hosts and mdBook give to a heading.
fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|it| match it {
        ' ' => Some('-'),
        '-' | '_' => Some(it),
        _ if it.is_alphanumeric() => Some(it),
        _ => None,
    });
    kept.flat_map(char::to_lowercase).collect()
}

/// The path from the root of the repository to which a link of the page `from` leads; an empty link leads to the page
/// itself. A path that leaves the repository has none.
pub(crate) fn resolve(from: &str, link: &str) -> Option<String> {
    if link.is_empty() {
        return Some(from.to_owned());
    }
    if link.starts_with('/') {
        return None;
    }
    let mut parts: Vec<_> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
