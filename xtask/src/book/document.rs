//! Pictures of pages: HTML in an SVG, which browsers draw as they draw the page.

use anyhow::{Context, Result};
use regex::Regex;

/// The size of a picture, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) width: u32,
    pub(super) height: u32,
}

impl Size {
    /// Parses `WIDTHxHEIGHT`.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let (width, height) = text.split_once('x').context("a size is WIDTHxHEIGHT, in pixels")?;
        let number = |text: &str| text.parse().with_context(|| format!("`{text}` is no number of pixels"));
        Ok(Self { width: number(width)?, height: number(height)? })
    }
}

/// Returns the picture of the upper left part of an HTML page without scripts and other files.
pub(super) fn svg(title: &str, html: &str, size: Size) -> Result<String> {
    let style = between(html, "<style>", "</style>")?;
    let body = between(html, "<body>", "</body>")?;
    // what HTML leaves open XML closes
    let body = Regex::new(r"<(br|col|hr|img|wbr)\b([^>]*[^>/])?>")?.replace_all(body, "<$1$2/>");
    let Size { width, height } = size;
    let title = super::screen::escaped(title);
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\" aria-label=\"Output of {title}\">\n\
         <foreignObject width=\"{width}\" height=\"{height}\">\n\
         <body xmlns=\"http://www.w3.org/1999/xhtml\" style=\"height: {height}px; overflow: hidden\">\n\
         <style><![CDATA[\n{}\n]]></style>\n{}\n</body>\n</foreignObject>\n</svg>\n",
        style.trim(),
        body.trim()
    ))
}

/// Returns the text of a picture that `svg` made: the lines of its page's body.
pub(super) fn text(svg: &str) -> &str {
    svg.split_once("</style>").map_or("", |(_, body)| body)
}

fn between<'t>(html: &'t str, start: &str, end: &str) -> Result<&'t str> {
    let (_, rest) = html.split_once(start).with_context(|| format!("a page without {start}"))?;
    let (inner, _) = rest.split_once(end).with_context(|| format!("a page without {end}"))?;
    Ok(inner)
}

#[cfg(test)]
mod tests {
    use super::{Size, svg, text};

    const PAGE: &str = "<!doctype html>\n<meta charset=\"utf-8\">\n<style>\na > b { color: red }\n</style>\n\
                        </head>\n<body>\n<p>one<br>two</p><colgroup><col class=\"head\"><col span=\"2\"/></colgroup>\n\
                        </body>\n</html>\n";

    #[test]
    fn a_page_is_an_svg_that_an_xml_parser_reads() {
        let size = Size::parse("300x200").expect("a size");
        let svg = svg("cat <page>", PAGE, size).expect("made");
        assert!(svg.contains("<![CDATA[\na > b { color: red }\n]]>"), "{svg}");
        assert!(svg.contains("<p>one<br/>two</p>"), "{svg}");
        assert!(svg.contains("<col class=\"head\"/><col span=\"2\"/>"), "{svg}");
        assert!(svg.contains("Output of cat &lt;page&gt;"), "{svg}");
        assert!(text(&svg).trim_start().starts_with("<p>one<br/>"), "{svg}");
    }

    #[test]
    fn a_text_that_is_no_page_and_a_size_that_is_none_are_errors() {
        assert!(svg("cat", "no page", Size { width: 1, height: 1 }).is_err());
        assert!(Size::parse("300").is_err());
        assert!(Size::parse("300xwide").is_err());
    }
}
