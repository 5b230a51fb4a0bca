use super::*;
use serde_json::json;

fn canonical(text: &str) -> String {
    canonical_json(&serde_json::from_str(text).unwrap())
}

/// ID-2: the example of RFC 8785, 3.2.2 and 3.2.3.
#[test]
fn the_example_of_the_rfc() {
    let input = r#"{
        "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]
    }"#;
    let expected = concat!(
        r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"#,
        r#""string":"€$\u000f\nA'B\"\\\\\"/"}"#
    );
    assert_eq!(canonical(input), expected);
}

/// ID-2: the order of fields of RFC 8785, 3.2.3.
#[test]
fn fields_are_in_the_order_of_utf_16() {
    let input = r#"{
        "\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One", "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis"
    }"#;
    let expected = concat!(
        r#"{"\r":"Carriage Return","1":"One","#,
        "\"\u{80}\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",",
        "\"😀\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}"
    );
    assert_eq!(canonical(input), expected);
}

/// ID-2: the numbers of RFC 8785, appendix B.
#[test]
fn doubles_are_spelt_as_in_the_rfc() {
    let samples: [(u64, &str); 24] = [
        (0x0000_0000_0000_0000, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ];
    for (bits, expected) in samples {
        assert_eq!(canonical_json(&json!(f64::from_bits(bits))), expected, "{bits:x}");
    }
}

/// ID-2: the order of fields, white space and the spelling of numbers and strings do not matter.
#[test]
fn spelling_does_not_matter() {
    let same: [&[&str]; 7] = [
        &[r#"{"a":1,"b":{"d":2,"c":3}}"#, "{ \"b\" : {\"c\":3,\n\"d\":2}, \"a\":1 }"],
        &["1", "1.0", "1e0", "10e-1", "100.0E-2"],
        &["100", "1e2", "100.000", "0.1e3"],
        &["0", "-0", "0.0", "-0.0", "0e9"],
        &["9223372036854775808", "9223372036854775808.0", "9.223372036854775808e18"],
        &["-9223372036854775808", "-9.223372036854775808e18"],
        &[r#""Aé/""#, r#""\u0041\u00e9\/""#],
    ];
    for texts in same {
        for text in texts {
            assert_eq!(canonical(text), canonical(texts[0]), "{text}");
        }
    }
}

/// ID-2: values do matter, including those that doubles cannot tell apart.
#[test]
fn values_that_differ_stay_different() {
    let different = [
        "1",
        "\"1\"",
        "true",
        "[1]",
        "[1,2]",
        "[2,1]",
        "{}",
        "[]",
        "null",
        "\"\"",
        "1.0000000000000002",
        "9007199254740992",
        "9007199254740993",
        "18446744073709551614",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775807",
        "-9223372036854775808",
        r#"{"a":null}"#,
        r#"{"a":{},"b":[]}"#,
        r#"{"a":{"b":[]}}"#,
    ];
    let texts: std::collections::BTreeSet<_> = different.iter().map(|text| canonical(text)).collect();
    assert_eq!(texts.len(), different.len());
}

/// ID-2: the text of a value reads back as that value.
#[test]
fn a_canonical_text_is_its_own_canonical_text() {
    let value = json!({"x": [0.1, 1e300, -5, {"deep": [[], {}, "\u{1}\u{7f}\u{2028}"]}], "": null});
    let text = canonical_json(&value);
    assert_eq!(canonical(&text), text);
    assert_eq!(text, "{\"\":null,\"x\":[0.1,1e+300,-5,{\"deep\":[[],{},\"\\u0001\u{7f}\u{2028}\"]}]}");
}

/// CC-4, ID-2: a deeply nested value costs no stack.
#[test]
fn a_deep_value_is_written() {
    let mut value = json!(1);
    for _ in 0..5_000 {
        value = Value::Array(vec![Value::Object(Map::from_iter([("a".to_owned(), value)]))]);
    }
    let text = canonical_json(&value);
    assert_eq!(text.len(), 5_000 * r#"[{"a":}]"#.len() + 1);
    // Taken apart by hand, because dropping it whole would recurse.
    while let Some(inner) = value.get_mut(0).and_then(|field| field.get_mut("a")) {
        value = inner.take();
    }
}
