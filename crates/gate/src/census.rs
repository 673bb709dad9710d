//! A count of the tests in a workspace's files, so that tests which go missing are seen.
//!
//! It reads files, it runs nothing: the count must be the same whether the code compiles or not. What a test is
//! called and whether it is skipped is read from code with strings and comments blanked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};
use triphammer_model::{Digest, WorkPath};

use crate::files::WorkFiles;
use crate::mask::{Class, Language, classify, keep};

/// Larger files are not read for tests.
const FILE_CAP: u64 = 4 << 20;

/// One test as it stands in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TestFn {
    /// Its name in the file.
    pub(crate) name: String,
    /// Whether it is ignored or skipped.
    pub(crate) ignored: bool,
    /// Whether it does anything.
    pub(crate) empty: bool,
    /// Whether it asserts anything that could fail.
    pub(crate) asserts: bool,
    /// Digest of its body without white space: a renamed test is no removed one.
    pub(crate) body: Digest,
}

/// All tests of a workspace by file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestCensus {
    pub(crate) files: BTreeMap<WorkPath, Vec<TestFn>>,
    /// Files with a mark that keeps the other tests from running (`it.only`).
    #[serde(default)]
    pub(crate) exclusive: BTreeSet<WorkPath>,
}

impl TestCensus {
    /// Whether a file can hold tests that this census knows: only these need be read.
    pub fn wants(path: &WorkPath) -> bool {
        match Language::of(path) {
            Some(Language::Go) => path.file_name().ends_with(b"_test.go"),
            Some(Language::Shell) | None => false,
            Some(_) => true,
        }
    }

    /// Counts the tests in the given files.
    pub fn take(files: impl IntoIterator<Item = (WorkPath, Vec<u8>)>) -> Self {
        let mut census = Self::default();
        for (path, bytes) in files {
            let Some(language) = Language::of(&path).filter(|_| Self::wants(&path)) else { continue };
            // Most files hold no test; a look for the word is much cheaper than a look at the code.
            if !MAY_TEST.is_match(&bytes) {
                continue;
            }
            let source = Source::new(language, &bytes);
            let tests = match language {
                Language::Rust => source.rust(),
                Language::Python => source.python(),
                Language::JavaScript | Language::TypeScript => {
                    if ONLY.is_match(&source.code) {
                        census.exclusive.insert(path.clone());
                    }
                    source.javascript()
                }
                Language::Go => source.go(),
                Language::Zig => source.zig(),
                Language::Shell => Vec::new(),
            };
            if !tests.is_empty() {
                census.files.insert(path, tests);
            }
        }
        census
    }

    /// Counts the tests in a workspace's files.
    pub fn of(files: &WorkFiles) -> Self {
        let wanted = files.paths().iter().filter(|p| Self::wants(p));
        Self::take(wanted.filter_map(|p| Some((p.clone(), files.read(p, FILE_CAP).ok()?))))
    }

    /// How many tests there are.
    pub fn tests(&self) -> usize {
        self.files.values().map(Vec::len).sum()
    }
}

static MAY_TEST: LazyLock<regex::bytes::Regex> = LazyLock::new(|| {
    regex::bytes::Regex::new(r"test|Test|Fuzz|quickcheck|\bx?it\b|fit|specify|only|fdescribe")
        .expect("the pattern is fixed")
});

macro_rules! pattern {
    ($name:ident, $text:literal) => {
        static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($text).expect("the pattern is fixed"));
    };
}

// Attributes, then a function. Within strings and comments everything is blank by now.
pattern!(
    RUST_FN,
    r"((?:#\[(?:[^\[\]]|\[[^\[\]]*\])*\]\s*)+)(?:pub(?:\([^)]*\))?\s+)?(?:(?:const|async|unsafe)\s+)*fn\s+(\w+)"
);
pattern!(
    RUST_TEST,
    r"#\[\s*(?:\w+\s*::\s*)*(?:test|rstest|test_case|wasm_bindgen_test|quickcheck|proptest)\s*[\](]"
);
pattern!(RUST_IGNORE, r"#\[\s*(?:cfg_attr\s*\((?:[^\[\]])*\b)?ignore\b");
pattern!(
    RUST_ASSERT,
    r"\b\w*assert\w*!|\bpanic!|\bunreachable!|\.unwrap\w*\s*\(|\.expect\w*\s*\(|\?\s*[;)]|\bassert\w*\s*[(.]"
);
pattern!(
    RUST_TRIVIAL,
    r"\b(?:debug_)?assert!\s*\(\s*true\s*\)|\bassert_eq!\s*\(\s*(?:1\s*,\s*1|true\s*,\s*true)\s*\)"
);
pattern!(PY_DEF, r"(?m)^([ \t]*)(?:async[ \t]+)?def[ \t]+(test\w*)[ \t]*\(");
pattern!(PY_SKIP, r"@(?:\w+\.)*(?:skip|skipif|skipIf|skipUnless|xfail|expectedFailure)\b");
pattern!(PY_SKIP_BODY, r"\b(?:pytest\.(?:skip|xfail)|self\.skipTest)\s*\(|\bSkipTest\b");
pattern!(
    PY_ASSERT,
    r"\bassert\b|\.assert\w*\s*\(|\b(?:raises|warns)\s*\(|\bself\.fail\w*\s*\(|\bpytest\.fail\b"
);
pattern!(PY_TRIVIAL, r"\bassert\s+True\b|\.assertTrue\s*\(\s*True\s*\)");
pattern!(GO_FN, r"(?m)^func\s+((?:Test|Fuzz)\w*)\s*\(\s*(\w+)\s+\*testing\.");
pattern!(GO_SKIP, r"\b\w+\.Skip(?:f|Now)?\s*\(");
pattern!(
    GO_ASSERT,
    r"\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\b|\b(?:assert|require|is|check)\w*\s*[.(]|\(\s*t\s*[,)]"
);
pattern!(JS_TEST, r"(?m)(^|[^\w.$])(x|f)?(it|test|specify)((?:\.\w+)*)\s*\(");
pattern!(JS_SUITE_SKIP, r"(?m)(?:^|[^\w.$])(?:(?:describe|suite|context)\.(?:skip|todo)|xdescribe)\s*\(");
pattern!(ONLY, r"(?m)(?:^|[^\w.$])(?:(?:it|test|describe|suite|context|specify)\.only|fit|fdescribe)\s*\(");
pattern!(
    JS_ASSERT,
    r"\bexpect\s*[(.]|\bassert\w*\s*[(.]|\bshould\b|\bt\.\w+\s*\(|\bthrow\b|\breject\s*\(|\bdone\s*\("
);
pattern!(
    JS_TRIVIAL,
    r"\bexpect\s*\(\s*true\s*\)\s*\.\s*(?:toBe|toEqual|to\.equal)\s*\(\s*true\s*\)|\bassert(?:\.ok)?\s*\(\s*true\s*\)"
);
pattern!(ZIG_TEST, r"(?m)^\s*test\b\s*");
pattern!(ZIG_ASSERT, r"\bexpect\w*\s*\(|\btry\b|\breturn\s+error\.|@panic\b|\bassert\s*\(");
pattern!(ZIG_TRIVIAL, r"\bexpect\s*\(\s*true\s*\)|\berror\.SkipZigTest\b");

struct Source {
    /// Strings and comments blanked; one character a byte, so that offsets hold.
    code: String,
    /// Comments blanked, as bytes.
    text: Vec<u8>,
}

impl Source {
    fn new(language: Language, bytes: &[u8]) -> Self {
        let classes = classify(language, bytes);
        // Bytes beyond ASCII become a letter: patterns then work on text of the same length.
        let ascii = |b: u8| if b.is_ascii() { char::from(b) } else { 'x' };
        let code = keep(bytes, &classes, &[Class::Code]).into_iter().map(ascii).collect();
        Self { code, text: keep(bytes, &classes, &[Class::Code, Class::Text]) }
    }

    fn test(
        &self,
        name: String,
        ignored: bool,
        body: std::ops::Range<usize>,
        asserts: &Regex,
        trivial: &Regex,
    ) -> TestFn {
        let code = &self.code[body.clone()];
        let inner = code.trim_matches(|c: char| c.is_whitespace() || matches!(c, '{' | '}'));
        let empty = inner.is_empty() || matches!(inner, "pass" | "..." | "return" | "return;");
        let mut squeezed = self.text[body].to_vec();
        squeezed.retain(|b| !b.is_ascii_whitespace());
        TestFn {
            name,
            ignored,
            empty,
            asserts: asserts.is_match(&trivial.replace_all(code, "")),
            body: Digest::of(squeezed),
        }
    }

    /// From the first `{` at or after `from` to its partner. Up to the end when there is none.
    fn braces(&self, from: usize) -> std::ops::Range<usize> {
        self.pair(from, b'{', b'}')
    }

    fn pair(&self, from: usize, open: u8, close: u8) -> std::ops::Range<usize> {
        let bytes = self.code.as_bytes();
        let begin = bytes[from..].iter().position(|b| *b == open).map_or(bytes.len(), |i| from + i);
        let mut depth = 0_usize;
        for (i, b) in bytes.iter().enumerate().skip(begin) {
            if *b == open {
                depth += 1;
            } else if *b == close {
                depth -= 1;
                if depth == 0 {
                    return begin..i + 1;
                }
            }
        }
        begin..bytes.len()
    }

    fn rust(&self) -> Vec<TestFn> {
        let mut tests = Vec::new();
        for found in RUST_FN.captures_iter(&self.code) {
            let (Some(attributes), Some(name)) = (found.get(1), found.get(2)) else { continue };
            if !RUST_TEST.is_match(attributes.as_str()) {
                continue;
            }
            let ignored = RUST_IGNORE.is_match(attributes.as_str());
            let body = self.braces(name.end());
            let mut test = self.test(name.as_str().to_owned(), ignored, body, &RUST_ASSERT, &RUST_TRIVIAL);
            test.asserts |= attributes.as_str().contains("should_panic");
            tests.push(test);
        }
        tests
    }

    fn python(&self) -> Vec<TestFn> {
        let mut tests = Vec::new();
        for found in PY_DEF.captures_iter(&self.code) {
            let (Some(whole), Some(indent), Some(name)) = (found.get(0), found.get(1), found.get(2)) else {
                continue;
            };
            let head = self.pair(whole.end() - 1, b'(', b')').end;
            let body = self.indented(head, indent.as_str().len());
            let before = &self.code[..whole.start()];
            let mut ignored = PY_SKIP_BODY.is_match(&self.code[body.clone()]);
            // Decorators stand directly above, at the same indent; one may go over several lines.
            for line in before.lines().rev() {
                let rest = line.trim_start();
                if rest.is_empty()
                    || (line.len() - rest.len() <= indent.as_str().len() && !rest.starts_with(['@', ')']))
                {
                    break;
                }
                ignored |= PY_SKIP.is_match(rest);
            }
            tests.push(self.test(name.as_str().to_owned(), ignored, body, &PY_ASSERT, &PY_TRIVIAL));
        }
        tests
    }

    /// The body after a `def`'s parentheses: up to the next line of code at `indent` or less.
    fn indented(&self, from: usize, indent: usize) -> std::ops::Range<usize> {
        let bytes = self.code.as_bytes();
        let begin = bytes[from.min(bytes.len())..]
            .iter()
            .position(|b| *b == b':')
            .map_or(bytes.len(), |i| from + i + 1);
        let mut end = begin;
        for (n, line) in self.code[begin..].split_inclusive('\n').enumerate() {
            let rest = line.trim_start();
            if n > 0 && !rest.is_empty() && line.len() - rest.len() <= indent {
                break;
            }
            end += line.len();
        }
        begin..end
    }

    fn javascript(&self) -> Vec<TestFn> {
        let skipped: Vec<std::ops::Range<usize>> =
            JS_SUITE_SKIP.find_iter(&self.code).map(|m| self.pair(m.end() - 1, b'(', b')')).collect();
        let mut tests = Vec::new();
        for found in JS_TEST.captures_iter(&self.code) {
            let (Some(whole), chain) = (found.get(0), found.get(4).map_or("", |m| m.as_str())) else {
                continue;
            };
            let call = self.pair(whole.end() - 1, b'(', b')');
            // `test.each(...)("name", ...)` has its name in the second call.
            let call = if self.code.as_bytes().get(call.end) == Some(&b'(') {
                self.pair(call.end, b'(', b')')
            } else {
                call
            };
            let Some(name) = self.string_in(call.start + 1, call.end) else { continue };
            let ignored = found.get(2).is_some_and(|m| m.as_str() == "x")
                || chain.split('.').any(|c| matches!(c, "skip" | "todo" | "failing"))
                || skipped.iter().any(|r| r.contains(&whole.start()));
            let body = self.braces(call.start);
            let body = if body.end <= call.end { body } else { call };
            tests.push(self.test(name, ignored, body, &JS_ASSERT, &JS_TRIVIAL));
        }
        tests
    }

    /// The string literal that is the first thing in a range.
    fn string_in(&self, from: usize, to: usize) -> Option<String> {
        let rest = self.text.get(from..to)?;
        let at = rest.iter().position(|b| !b.is_ascii_whitespace())?;
        let quote = *rest.get(at).filter(|b| matches!(b, b'"' | b'\'' | b'`'))?;
        let len = self.code.as_bytes()[from + at + 1..to].iter().position(|b| *b == quote)?;
        Some(String::from_utf8_lossy(&rest[at + 1..at + 1 + len]).into_owned())
    }

    fn go(&self) -> Vec<TestFn> {
        let mut tests = Vec::new();
        for found in GO_FN.captures_iter(&self.code) {
            let (Some(whole), Some(name)) = (found.get(0), found.get(1)) else { continue };
            let body = self.braces(whole.end());
            let ignored = GO_SKIP.is_match(&self.code[body.clone()]);
            tests.push(self.test(name.as_str().to_owned(), ignored, body, &GO_ASSERT, &ZIG_TRIVIAL));
        }
        tests
    }

    fn zig(&self) -> Vec<TestFn> {
        let mut tests = Vec::new();
        for found in ZIG_TEST.find_iter(&self.code) {
            let brace = self.code[found.end()..].find('{').map_or(self.code.len(), |i| found.end() + i);
            let name = self
                .string_in(found.end(), brace)
                .unwrap_or_else(|| self.code[found.end()..brace].trim().to_owned());
            let body = self.braces(found.end());
            let ignored = self.code[body.clone()].contains("error.SkipZigTest");
            tests.push(self.test(name, ignored, body, &ZIG_ASSERT, &ZIG_TRIVIAL));
        }
        tests
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `name` and its marks: `!` ignored, `0` empty, `-` asserts nothing.
    fn seen(path: &str, source: &str) -> Vec<String> {
        let census = TestCensus::take([(WorkPath::from(path), source.as_bytes().to_vec())]);
        let marks = |t: &TestFn| {
            let mark = |on, c: &str| if on { c.to_owned() } else { String::new() };
            format!("{}{}{}{}", t.name, mark(t.ignored, "!"), mark(t.empty, "0"), mark(!t.asserts, "-"))
        };
        census.files.values().flatten().map(marks).collect()
    }

    #[test]
    fn rust() {
        let source = r##"
            // #[test] fn in_comment() {}
            const S: &str = "#[test] fn in_string() {}";
            fn helper() {}
            #[test]
            fn one() { assert_eq!(f("}"), 1); }
            #[tokio::test(flavor = "multi_thread")]
            #[ignore = "slow"]
            async fn two() { x().await.unwrap(); }
            #[test] fn three() { /* assert!(x) */ }
            #[test] fn four() { assert!(true); }
            #[test]
            #[should_panic(expected = "x")]
            fn five() { f() }
            #[cfg_attr(miri, ignore)]
            #[test]
            pub(crate) fn six() -> Result<(), E> { f()?; Ok(()) }
            #[derive(Debug)] struct X;
            #[cfg(test)] fn not_a_test() {}
        "##;
        assert_eq!(seen("src/lib.rs", source), ["one", "two!", "three0-", "four-", "five", "six!"]);
    }

    #[test]
    fn python() {
        let source = "def test_one():\n    assert f() == 1\n\n@pytest.mark.skip(reason='x')\n@other\ndef test_two(a,\n             b=1):\n    assert x\n\nclass TestA:\n    def test_three(self):\n        pass\n    async def test_four(self):\n        self.assertEqual(1, 1)\n        # def test_comment(): assert 1\n\ndef test_five():\n    '''assert'''\n    f()\n\ndef test_six(): pytest.skip('no')\ndef helper(): assert x\n";
        assert_eq!(
            seen("tests/test_a.py", source),
            ["test_one", "test_two!", "test_three0-", "test_four", "test_five-", "test_six!-"]
        );
    }

    #[test]
    fn javascript() {
        let source = "describe('a', () => {\n  it('one', () => { expect(1).toBe(x) })\n  it.skip('two', function () { assert(x) })\n  xit('three', () => { expect(a) })\n  // it('comment', () => {})\n  test.each([1, 2])('four %i', (n) => { expect(n).toBe(n) })\n  it('five', () => {})\n})\ndescribe.skip('b', () => { test(\"six\", () => { expect(true).toBe(true) }) })\nfit('seven', async () => { await expect(x).rejects.toThrow() })\nawait submit('no');\n";
        assert_eq!(
            seen("a.test.ts", source),
            ["one", "two!", "three!", "four %i", "five0-", "six!-", "seven"]
        );
        let census = TestCensus::take([(WorkPath::from("a.test.ts"), source.as_bytes().to_vec())]);
        assert_eq!(census.exclusive.len(), 1);
    }

    #[test]
    fn go_and_zig() {
        let source = "func TestOne(t *testing.T) {\n\tif f() != 1 { t.Errorf(\"}\") }\n}\nfunc TestTwo(t *testing.T) { t.Skip(\"x\") }\nfunc TestThree(t *testing.T) {}\nfunc helper(t *testing.T) {}\n";
        assert_eq!(seen("a_test.go", source), ["TestOne", "TestTwo!-", "TestThree0-"]);
        assert!(seen("a.go", source).is_empty());
        let source = "test \"one\" { try std.testing.expect(f() == 1); }\ntest two { return error.SkipZigTest; }\ntest \"three\" {}\n// test \"four\" {}\n";
        assert_eq!(seen("a.zig", source), ["one", "two!-", "three0-"]);
    }

    #[test]
    fn round_trips() {
        let census = TestCensus::take([(WorkPath::from("a.rs"), b"#[test] fn a() { assert!(x) }".to_vec())]);
        let json = serde_json::to_string(&census).unwrap();
        assert_eq!(serde_json::from_str::<TestCensus>(&json).unwrap(), census);
        assert_eq!(census.tests(), 1);
    }

    proptest::proptest! {
        #[test]
        fn never_fails(source in "([a-z#\\[\\](){}'\"`:@ \n]|#\\[test\\]|fn |def test_|it\\('|test |func Test){0,60}") {
            for path in ["a.rs", "a.py", "a.js", "a_test.go", "a.zig"] {
                let _ = TestCensus::take([(WorkPath::from(path), source.as_bytes().to_vec())]);
            }
        }
    }
}
