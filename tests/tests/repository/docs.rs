//! The documentation as a whole: every link leads somewhere, and every page is listed where readers look for it.

mod page;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use page::{Page, resolve};

/// The root of the repository.
fn root() -> PathBuf {
    wakeai_tests::root().to_owned()
}

/// The pages by their paths from the root: those at the root, those of some directories, and all below `docs`.
fn pages() -> BTreeMap<String, Page> {
    let mut paths = Vec::new();
    for directory in ["", "scenarios", "python"] {
        paths.extend(entries(&root().join(directory)).into_iter().filter(|path| path.is_file()));
    }
    let mut below = vec![root().join("docs")];
    while let Some(directory) = below.pop() {
        let (directories, files): (Vec<_>, Vec<_>) =
            entries(&directory).into_iter().partition(|path| path.is_dir());
        below.extend(directories);
        paths.extend(files);
    }
    let markdown = paths.into_iter().filter(|path| path.extension().is_some_and(|it| it == "md"));
    markdown
        .map(|path| {
            let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
            (name, Page::read(&fs::read_to_string(&path).unwrap()))
        })
        .collect()
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// What is wrong with the links of a page.
fn broken(name: &str, pages: &BTreeMap<String, Page>) -> Vec<String> {
    let page = &pages[name];
    let wrong = page.links.iter().filter_map(|link| {
        let why = problem(name, link, pages)?;
        Some(format!("{name}: {link}: {why}"))
    });
    wrong.collect()
}

/// Why a link of the page `from` does not lead anywhere. Links to other hosts are not followed.
fn problem(from: &str, link: &str, pages: &BTreeMap<String, Page>) -> Option<String> {
    if let Some((scheme, rest)) = link.split_once(':') {
        let host = rest.strip_prefix("//").and_then(|rest| rest.split(['/', '#', '?']).next());
        return match (scheme, host) {
            ("https", Some(host)) if host.contains('.') && !link.contains(char::is_whitespace) => {
                None
            }
            _ => Some("write https://HOST/… with a full name, or a relative path".to_owned()),
        };
    }
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, it)| (path, Some(it)));
    let Some(target) = resolve(from, path) else {
        return Some("it leaves the repository, or begins at the root of a host".to_owned());
    };
    if !pages.contains_key(&target) && !root().join(&target).is_file() {
        return Some(format!("there is no file {target}"));
    }
    let anchor = anchor?;
    match pages.get(&target) {
        None => Some(format!("anchors are checked in the pages of docs/ only, not in {target}")),
        Some(page) if page.anchors.iter().any(|it| it == anchor) => None,
        Some(page) => Some(format!("{target} has these anchors: {}", page.anchors.join(" "))),
    }
}

#[test]
fn every_link_leads_somewhere() {
    let pages = pages();
    assert!(pages.values().map(|page| page.links.len()).sum::<usize>() > 200, "links are found");
    let wrong: Vec<_> = pages.keys().flat_map(|name| broken(name, &pages)).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn a_link_to_no_file_to_no_anchor_and_out_of_the_repository_is_found() {
    let mut pages = pages();
    let text = "[a](nowhere.md) [b](fleet.md#nowhere) [c](../../../x.md) [d](/docs/security.md) \
                [e](http://example.org) [f](https://host/x) ![g](nothing.png) [h](plots/) [i](#nowhere)\n\n\
                [j][it] `[not a link](nowhere.md)`\n\n[it]: nowhere.md\n\n<a href=\"nowhere.html\">k</a>";
    let good = "[a](fleet.md) [b](../security.md#the-proxy) [c](https://example.org/a#b) \
                ![d](kernel.png) [e](#a-heading-here)\n\n# A `heading`, here!";
    pages.insert("docs/guides/wrong.md".to_owned(), Page::read(text));
    pages.insert("docs/guides/right.md".to_owned(), Page::read(good));
    let found = broken("docs/guides/wrong.md", &pages);
    assert_eq!(found.len(), 11, "{found:#?}");
    assert_eq!(broken("docs/guides/right.md", &pages), [""; 0]);
}

/// The pages to which a page links, by their paths from the root.
fn listed(name: &str, pages: &BTreeMap<String, Page>) -> Vec<String> {
    let links = pages[name].links.iter().filter(|link| !link.contains(':'));
    links.map(|link| resolve(name, link.split('#').next().unwrap()).unwrap()).collect()
}

#[test]
fn the_site_has_every_page_once() {
    let pages = pages();
    let listed = listed("docs/SUMMARY.md", &pages);
    for name in
        pages.keys().filter(|name| *name != "docs/SUMMARY.md" && *name != "python/README.md")
    {
        let times = listed.iter().filter(|it| *it == name).count();
        assert_eq!(times, 1, "docs/SUMMARY.md has {name} {times} times");
    }
}

#[test]
fn the_readme_leads_to_the_list_of_pages_and_to_each_first_step() {
    let pages = pages();
    let listed = listed("README.md", &pages);
    assert!(listed.contains(&"docs/SUMMARY.md".to_owned()), "README.md does not link it");
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let (_, start) = summary.split_once("# Start\n").unwrap();
    let first = Page::read(start.split("\n# ").next().unwrap()).links;
    assert!(first.len() >= 3, "{first:?}");
    for link in first {
        let name = resolve("docs/SUMMARY.md", &link).unwrap();
        assert!(listed.contains(&name), "README.md lacks the first step {name}");
    }
}
