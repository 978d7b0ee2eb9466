"""Documents, plates, foreign phone numbers, WeChat ids and addresses are replaced beside their names only."""

from typing import Any

import pytest

from sync.redaction import Redactor

REDACTOR = Redactor()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("护照号 E12345678", "护照号 [护照号]"),
        ("护照：EJ1234567，到期", "护照：[护照号]，到期"),
        ("My passport number is E98765432.", "My passport number is [护照号]."),
        ("G12345678 是我的护照", "[护照号] 是我的护照"),
        ("港澳通行证 C12345678", "港澳通行证 [通行证号]"),
        ("往来港澳通行证号码 CA1234567", "往来港澳通行证号码 [通行证号]"),
        ("港澳居民来往内地通行证：H1234567801", "港澳居民来往内地通行证：[通行证号]"),
        ("回乡证 M1234567801", "回乡证 [通行证号]"),
        ("我的车是京A12345，", "我的车是[车牌号]，"),
        ("车牌：粤B12345D", "车牌：[车牌号]"),
        ("沪A·D12345", "[车牌号]"),
        ("粤Z1234港", "[车牌号]"),
        ("打 +852 9123 4567 吧", "打 [电话号码] 吧"),
        ("(853) 6123 4567", "[电话号码]"),
        ("+1 (415) 555-2671", "[电话号码]"),
        ("call 415-555-2671", "call [电话号码]"),
        ("(415) 555-2671", "[电话号码]"),
        ("+44 20 7946 0958", "[电话号码]"),
        ("SSN 123-45-6789", "SSN [社会安全号]"),
        ("social security number: 123456789", "social security number: [社会安全号]"),
        ("微信号：zhang_san88", "微信号：[微信号]"),
        ("加我微信 lisi-2020", "加我微信 [微信号]"),
        ("我的微信是 wxid_abc123def", "我的微信是 [微信号]"),
        ("WeChat ID: hello_w0rld", "WeChat ID: [微信号]"),
        ("地址：广东省深圳市南山区科技园路15号3栋502室。", "地址：[地址]。"),
        ("我住在北京市朝阳区建国路88号", "我住在[地址]"),
        ("上海市浦东新区世纪大道 100 号", "[地址]"),
        ("家住文三路 259 号", "家住[地址]"),
        ("zhangsan艾特163点com", "[邮箱]"),
        ("邮箱是 li.si 艾特 qq 点 com", "邮箱是 [邮箱]"),
        ("wang123 at qq dot com", "[邮箱]"),
        ("卡号 6225881234567890123 CVV 123", "卡号 [银行卡号] CVV [密码]"),
        ("6225 8812 3456 7898, 12/27, 123", "[银行卡号], 12/27, [密码]"),
    ],
)
def test_a_document_is_replaced_beside_its_name(text: str, expected: str) -> None:
    assert REDACTOR.clean(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "版本 E12345678 型号",
        "C12345678",
        "订单 H12345678",
        "微信支付",
        "微信公众号 openid",
        "微信: wechatpay",
        "加微信群",
        "京A区",
        "北京市2026年人口2000万",
        "上海市浦东新区的天气",
        "浙江省杭州市地铁 2 号线",
        "上海市区道路 15 号线开通",
        "沿着中山路走 500 米",
        "京沪高速公路100号桩",
        "123-45-6789",
        "555-1234",
        "ISBN 978-7-111-54742-6",
        "+1 100",
        "+852 条",
        "meet me at google dot com",
        "CVV 3 位",
        "艾特一下张三，三点开会",
    ],
)
def test_what_only_has_the_shape_of_a_document_stays(text: str) -> None:
    assert REDACTOR.clean(text) == text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"passport": "E12345678"}, {"passport": "[护照号]"}),
        ({"passport_no": "G12345678"}, {"passport_no": "[护照号]"}),
        ({"ssn": 123456789}, {"ssn": "[社会安全号]"}),
        ({"微信号": "zhangsan"}, {"微信号": "[微信号]"}),
        ({"地址": "建国路88号院2号楼"}, {"地址": "[地址]"}),
        ({"address": "0x12", "phone": "none"}, {"address": "0x12", "phone": "none"}),
    ],
)
def test_the_name_of_a_field_says_whose_number_it_is(value: dict[str, Any], expected: dict[str, Any]) -> None:
    payload = REDACTOR.clean_payload(value)

    assert payload.value == expected
    assert REDACTOR.clean_payload(payload.value) == payload
