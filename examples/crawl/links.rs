//! The links of a page.

use std::sync::LazyLock;

use scraper::{Html, Selector};
use url::Url;

/// The http and https links of the page at `page` that may be followed, in their order.
///
/// `<base href>` is honoured; `rel=nofollow` and a robots meta tag that says so are kept to.
pub(crate) fn links(page: &Url, html: &str) -> Vec<Url> {
    let document = Html::parse_document(html);
    if forbids_following(&document) {
        return Vec::new();
    }
    let base = base(page, &document);
    document
        .select(&ANCHOR)
        .filter(|anchor| !has_word(anchor.attr("rel"), "nofollow"))
        .filter_map(|anchor| base.join(anchor.attr("href")?).ok())
        .filter(|link| matches!(link.scheme(), "http" | "https"))
        .map(without_fragment)
        .collect()
}

fn forbids_following(document: &Html) -> bool {
    document.select(&ROBOTS_META).any(|meta| {
        let content = meta.attr("content");
        has_word(content, "nofollow") || has_word(content, "none")
    })
}

fn base(page: &Url, document: &Html) -> Url {
    let declared = document.select(&BASE).next().and_then(|base| base.attr("href"));
    declared.and_then(|href| page.join(href).ok()).unwrap_or_else(|| page.clone())
}

fn has_word(list: Option<&str>, word: &str) -> bool {
    list.unwrap_or_default()
        .split(|c: char| c == ',' || c.is_ascii_whitespace())
        .any(|entry| entry.eq_ignore_ascii_case(word))
}

fn without_fragment(mut link: Url) -> Url {
    link.set_fragment(None);
    link
}

static ANCHOR: LazyLock<Selector> = LazyLock::new(|| selector("a[href], area[href]"));
static BASE: LazyLock<Selector> = LazyLock::new(|| selector("base[href]"));
static ROBOTS_META: LazyLock<Selector> = LazyLock::new(|| selector("meta[name=robots i]"));

#[expect(clippy::expect_used, reason = "the selectors are constants, and tests use each")]
fn selector(text: &str) -> Selector {
    Selector::parse(text).expect("a valid selector")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(html: &str) -> Vec<String> {
        let page = "http://a.test/dir/page.html".parse().unwrap();
        links(&page, html).iter().map(Url::to_string).collect()
    }

    #[test]
    fn relative_links_go_by_the_page_or_by_its_base() {
        let anchors = "<a href=x.html#y>x</a> <a href='../z'>z</a> <a href='//b.test/'>b</a>";
        assert_eq!(
            found(anchors),
            ["http://a.test/dir/x.html", "http://a.test/z", "http://b.test/"]
        );
        let with_base = format!("<base href='/other/'>{anchors}");
        assert_eq!(found(&with_base)[..2], ["http://a.test/other/x.html", "http://a.test/z"]);
    }

    #[test]
    fn links_that_ask_not_to_be_followed_are_not() {
        assert_eq!(
            found("<a href=x rel='noopener NoFollow'>x</a><a href=y rel=next>y</a>").len(),
            1
        );
        assert!(found("<meta name=Robots content='index, nofollow'><a href=x>x</a>").is_empty());
    }

    #[test]
    fn only_real_http_links_count() {
        let html = "<a href='mailto:x@y'>m</a><a href='javascript:x()'>j</a><a>none</a>\
                    <!-- <a href=c>c</a> --><a href='http://[bad/'>bad</a><area href=map>";
        assert_eq!(found(html), ["http://a.test/dir/map"]);
    }
}
