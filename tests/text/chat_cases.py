#!/usr/bin/env python3
"""Writes tests/unit/text/chat_cases.json: chat templates, variables, and the texts that the Python package
transformers makes of them. The test test_chat_template compares Weft with these texts, without Python.

    chat_cases.py            writes the file; needs transformers and jinja2
    chat_cases.py --check    tells whether the file is as it would be written

The templates are written for this test. Those named after a model have its markers and the same constructs as
its published template."""

import datetime
import json
import os
import sys
import time

os.environ["TZ"] = "UTC0"
time.tzset()

from transformers.utils import chat_template_utils  # noqa: E402

NOW = 1700000000  # 14 November 2023, 22:13:20 UTC


class Fixed(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.datetime(2023, 11, 14, 22, 13, 20)


chat_template_utils.datetime = Fixed

S = {"role": "system", "content": "You answer briefly."}
U = {"role": "user", "content": " Hello, how are you? "}
A = {"role": "assistant", "content": "Fine, thanks.\n"}
U2 = {"role": "user", "content": "Say <b>\"é\"</b> & 'x'\n"}
CALL = {"role": "assistant", "content": None, "tool_calls": [
    {"id": "a1b2c3d4e", "type": "function", "function": {"name": "weather", "arguments": {"city": "Köln \"1\"", "days": 2, "hot": False}}}]}
RESULT = {"role": "tool", "name": "weather", "tool_call_id": "a1b2c3d4e", "content": "22.5"}
THINK = {"role": "assistant", "content": "<think>\nhm\n</think>\n\nYes.", "reasoning_content": "hm"}
PARTS = {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "image"}, {"type": "text", "text": "two"}]}
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "Tells the <weather> of a city", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "description": "a city's name"}, "days": {"type": "integer", "enum": [1, 2]}},
    "required": ["city"]}, "return": {"type": "number"}}}]

TALKS = {"short": ([U], {}), "talk": ([U, A, U2], {}), "system": ([S, U, A, U2, A], {}), "tools": ([S, U, CALL, RESULT, A], {"tools": TOOLS}),
         "think": ([U, THINK, U2, THINK], {}), "flag": ([U, A, U2], {"enable_thinking": False}), "parts": ([PARTS, A], {}), "wrong": ([A, U], {})}

CHATML = """{%- for message in messages -%}
    {%- if loop.first and message['role'] != 'system' -%}
        {{- '<|im_start|>system\\nYou are helpful.<|im_end|>\\n' -}}
    {%- endif -%}
    {{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"""

LLAMA2 = """{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% set system = messages[0]['content'] %}
{% else %}{% set rest = messages %}{% set system = false %}{% endif %}
{% for m in rest %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate: user, assistant') }}{% endif %}
{% if loop.index0 == 0 and system != false %}{% set content = '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' + m['content'] %}
{% else %}{% set content = m['content'] %}{% endif %}
{% if m['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}
{%- elif m['role'] == 'assistant' %}{{ ' ' + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"""

LLAMA3 = """{{- bos_token }}
{%- if not date_string is defined %}{%- set date_string = strftime_now("%d %b %Y") %}{%- endif %}
{%- if custom_tools is defined %}{%- set tools = custom_tools %}{%- endif %}
{%- if not tools_in_user_message is defined %}{%- set tools_in_user_message = true %}{%- endif %}
{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{#- The system message goes first, so that it can be moved. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}{{- "Environment: ipython\\n" }}{%- endif %}
{{- "Today Date: " + date_string + "\\n\\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- if tools_in_user_message and not tools is none %}
    {%- if messages | length != 0 %}
        {%- set first_user_message = messages[0]['content']|trim %}
        {%- set messages = messages[1:] %}
    {%- else %}
        {{- raise_exception("There is no first message to put the tools into") }}
    {%- endif %}
    {{- '<|start_header_id|>user<|end_header_id|>\\n\\n' -}}
    {{- "Answer with JSON for a function call: " }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
    {{- first_user_message + "<|eot_id|>" }}
{%- endif %}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}{{- raise_exception("One call at a time") }}{%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

MISTRAL = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("The roles user and assistant must alternate") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS][" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}{{- ", " }}{%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" }}{%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST]" + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST]" + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS][" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}
                {{- raise_exception("Ids must have 9 characters") }}
            {%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" + eos_token }}{%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- message["content"] + eos_token}}
    {%- elif message["role"] == "tool_results" or message["role"] == "tool" %}
        {%- if message.content is defined and message.content.content is defined %}
            {%- set content = message.content.content %}
        {%- else %}
            {%- set content = message.content %}
        {%- endif %}
        {{- '[TOOL_RESULTS]{"content": ' + content|string + ", " }}
        {{- '"call_id": "' + message.tool_call_id + '"}[/TOOL_RESULTS]' }}
    {%- else %}
        {{- raise_exception("Unknown role: " + message.role) }}
    {%- endif %}
{%- endfor %}
"""

QWEN25 = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0]['role'] == 'system' %}{{- messages[0]['content'] }}{%- else %}{{- 'You are a helper.' }}{%- endif %}
    {{- "\\n\\n# Tools\\n\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools><|im_end|>\\n" }}
{%- elif messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- if message.content %}{{- '\\n' + message.content }}{%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}{%- set tool_call = tool_call.function %}{%- endif %}
            {{- '\\n<tool_call>\\n{"name": "' }}
            {{- tool_call.name }}
            {{- '", "arguments": ' }}
            {{- tool_call.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- message.content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}{{- '<|im_end|>\\n' }}{%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

QWEN3 = """{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}{%- set content = message.content %}{%- else %}{%- set content = '' %}{%- endif %}
    {%- if message.role != "assistant" %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- else %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index and (loop.last or (not loop.last and reasoning_content)) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}"""

GEMMA = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '\\n\\n' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '\\n\\n' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("The roles must alternate user/assistant/user/...") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}{%- set role = "model" -%}{%- else -%}{%- set role = message['role'] -%}{%- endif -%}
    {{ '<start_of_turn>' + role + '\\n' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}{{ '<start_of_image>' }}
            {%- elif item['type'] == 'text' -%}{{ item['text'] | trim }}{%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '<end_of_turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{'<start_of_turn>model\\n'}}{%- endif -%}
"""

PHI3 = """{% for message in messages %}{% if message['role'] == 'system' and message['content'] %}{{'<|system|>\\n' + message['content'] + '<|end|>\\n'}}{% elif message['role'] == 'user' %}{{'<|user|>\\n' + message['content'] + '<|end|>\\n'}}{% elif message['role'] == 'assistant' %}{{'<|assistant|>\\n' + message['content'] + '<|end|>\\n'}}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}"""

PHI4 = """{% for message in messages %}{% if (message['role'] == 'system') %}{{'<|im_start|>system<|im_sep|>' + message['content'] + '<|im_end|>'}}{% elif (message['role'] == 'user') %}{{'<|im_start|>user<|im_sep|>' + message['content'] + '<|im_end|>'}}{% elif (message['role'] == 'assistant') %}{{'<|im_start|>assistant<|im_sep|>'}}{% generation %}{{message['content'] + '<|im_end|>'}}{% endgeneration %}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant<|im_sep|>' }}{% endif %}"""

ZEPHYR = """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\\n'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}"""

DEEPSEEK = """{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{% set ns = namespace(is_first=false, is_tool=false, is_output_first=true, system_prompt='') %}{%- for message in messages %}{%- if message['role'] == 'system' %}{% set ns.system_prompt = message['content'] %}{%- endif %}{%- endfor %}{{bos_token}}{{ns.system_prompt}}{%- for message in messages %}{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{{'<｜User｜>' + message['content']}}{%- endif %}{%- if message['role'] == 'assistant' and message['content'] is not none and message['content'] is defined %}{% set content = message['content'] %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}{{'<｜Assistant｜>' + content + '<｜end▁of▁sentence｜>'}}{%- endif %}{%- if message['role'] == 'tool' %}{%- set ns.is_tool = true -%}{%- if ns.is_output_first %}{{'<｜outputs｜>' + message['content'] + '<｜/outputs｜>'}}{%- set ns.is_output_first = false %}{%- endif %}{%- endif %}{%- endfor -%}{% if add_generation_prompt and not ns.is_tool %}{{'<｜Assistant｜><think>\\n'}}{% endif %}"""

MODELS = {"SmolLM2": CHATML, "Llama 2": LLAMA2, "Llama 3": LLAMA3, "Mistral": MISTRAL, "Qwen 2.5": QWEN25, "Qwen 3": QWEN3, "Gemma 3": GEMMA,
          "Phi 3": PHI3, "Phi 4": PHI4, "Zephyr": ZEPHYR, "DeepSeek R1": DEEPSEEK}

# Each is one template; the variables are VALUES.
VALUES = {"s": " Füße und Ärger \n", "w": "one two  three", "n": 7, "f": 2.5, "t": True, "z": None, "l": [3, 1, 2], "e": [], "o": {"b": 1, "A": [2, None], "items": 5},
          "p": [{"name": "b", "x": 2}, {"name": "a", "x": 1}, {"name": "C"}], "q": "it's \"so\"\t\\"}
PIECES = [
    "a\n  {% if t %}\n  b\n  {% endif %}\n  c\n", "a  {%- if t -%}  b  {%- endif -%}  c", "  {%+ if t %}x{% endif %}\n\n y", "{% if t +%}\nx{% endif %}\n\n", "x {# c #}\ny\n  {#- d -#}  z{#+ #}",
    "{{ 'a' }}\n{{ 'b' -}}\n c {{- 'd' }}", "  {{ n }}  \r\n  {% if t %}\r\n x\r\n{% endif %}", "{{ {'a': {'b': 1}} }}{{ [1, (2,), ()] }}{{ 'x' 'y' \"z\" }}", "{# {{ #}{{ '{%' }}{{ '}}' }}",
    r"{{ 'a\n\t\\\'\"\x41\u00e9\q\0' }}", "{{ 1_000 }} {{ 0x1f }} {{ 0b11 }} {{ 1.5e3 }} {{ 1e-7 }} {{ 1e20 }} {{ 100.0 }} {{ 0.1 + 0.2 }} {{ 5e-324 }}",
    "{{ 7 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 1 + true }} {{ - n }} {{ -2 ** 2 }}",
    "{{ 'a' + 'b' ~ 1 ~ none ~ 2.0 ~ true }}|{{ 'ab' * 3 }}|{{ [1] * 2 }}|{{ [1] + [2] }}|{{ (1,) + (2,) }}|{{ 2 * 'x' }}",
    "{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 == true }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 1 != '1' }} {{ 'é' > 'z' }}", "{{ 'e' in w }} {{ 4 not in l }} {{ 'b' in o }} {{ 2 in [1, 2] }} {{ not 1 in l }} {{ missing in l }} {{ 'x' in missing }}",
    "{{ 1 and 0 }} {{ 0 or 'x' }} {{ not n }} {{ none or [] }} {{ 'a' if n > 3 else 'b' }} {{ 'a' if not t }} {{ 1 if 0 else 2 if 0 else 3 }}",
    "{{ s[1] }}{{ s[-3] }}{{ s[1:4] }}{{ s[::-1] }}{{ w[::2] }}{{ w[-5:] }}{{ l[1:] }}{{ l[::-1] }}{{ l[5:] }}{{ (1, 2, 3)[:2] }}{{ l[-1] }}{{ l[9] }}{{ l[True] }}{{ s[99] }}",
    "{{ o.b }}{{ o['A'][1] }}{{ o.items() | list }}{{ o['items'] }}{{ o.nope }}{{ o['nope'] is undefined }}{{ o.get('b') }}{{ o.get('x') }}{{ o.get('x', 4) }}{{ o.keys() | list }}{{ o.values() | list }}",
    "{% for k, v in o.items() %}{{ loop.index }}/{{ loop.length }} {{ k }}={{ v }}{% if not loop.last %}, {% endif %}{% endfor %}", "{% for k in o %}{{ k }}{% endfor %}{% for c in 'äb' %}{{ c }}.{% endfor %}{% for x in missing %}x{% else %}none{% endfor %}",
    "{% for x in l if x > 1 %}{{ loop.index0 }}{{ x }}{{ loop.first }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.revindex }}{{ loop.revindex0 }};{% else %}no{% endfor %}", "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% if x == 2 %}{% break %}{% endif %}{% endfor %}!",
    "{% for x in l %}{% for y in l %}{% if y == 1 %}{% break %}{% endif %}{{ x }}{{ y }} {% endfor %}{% endfor %}", "{% for (a, b) in [(1, 2), [3, 4]] %}{{ a }}{{ b }}{% endfor %}{% for x in 1, 2 %}{{ x }}{% endfor %}{% for i in range(5, 0, -2) %}{{ i }}{% endfor %}{% for i in range(2) %}{{ i }}{% endfor %}",
    "{% set x = 1 %}{% for i in l %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}{% if t %}{% set x = 9 %}{% endif %}{{ x }}{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set ns = namespace(a=1, b='x') %}{% for i in l %}{% set ns.a = ns.a + i %}{% set ns.c = i %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.c }}{{ ns.d is defined }}",
    "{% set x %}  a {{ n }} b  {% endset %}[{{ x }}]{% set y | trim | upper %}  a {{ n }} {% endset %}[{{ y }}]{% filter upper %}a{{ w }}{% endfilter %}", "{% macro m(a, b=2, c=a) %}({{ a }},{{ b }},{{ c }}){% endmacro %}{{ m(1) }}{{ m(1, c=3) }}{{ m(b=5, a=4) }}{{ m() }}{% set r = m('x') | length %}{{ r }}",
    "{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(4) }}{% macro g() %}{{ later }}{% endmacro %}{% set later = 'L' %}{{ g() }}", "{% set d = dict(a=1, b=[2]) %}{{ d }}{{ d.a }}{{ dict(d, c=3)['c'] }}{{ dict([('x', 1)]) }}{{ {1: 'a', 'b': none}[1] }}{{ {} }}",
    "{{ missing }}|{{ missing is defined }}|{{ missing | default('d') }}|{{ '' | default('d', true) }}|{{ z | default('d') }}|{{ missing or 'x' }}|{{ missing == other }}|{{ missing | length }}|{{ missing | list }}",
    "{{ s | trim }}|{{ w | upper }}|{{ s | lower }}|{{ w | title }}|{{ s | trim | capitalize }}|{{ 'xxaxx' | trim('x') }}|{{ w | replace('o', '0') }}|{{ w | replace('e', 'E', 1) }}|{{ 'ab' | replace('', '-') }}|{{ 12 | replace(1, 2) }}|{{ 'ß' | upper }}",
    "{{ o | tojson }}|{{ q | tojson }}|{{ s | tojson }}|{{ s | tojson(ensure_ascii=true) }}|{{ o | tojson(indent=2) }}|{{ l | tojson(separators=(',', ':')) }}|{{ o | tojson(sort_keys=true) }}|{{ [] | tojson(indent=1) }}{{ {} | tojson(indent=1) }}|{{ 1.0 | tojson }}{{ z | tojson }}{{ {1: 2, none: true} | tojson }}|{{ [1, [2, {'a': 1}]] | tojson(indent='\t') }}",
    "{{ l | join(', ') }}|{{ p | join('-', attribute='name') }}|{{ w | join('.') }}|{{ e | join }}|{{ l | first }}{{ l | last }}{{ e | first }}|{{ w | length }}{{ o | length }}{{ l | count }}|{{ w | list }}|{{ o | list }}|{{ w | reverse }}|{{ l | reverse | list }}",
    "{{ l | sort }}|{{ l | sort(reverse=true) }}|{{ p | sort(attribute='name') | map(attribute='name') | join }}|{{ ['b', 'A', 'a', 'B'] | sort }}{{ ['b', 'A', 'a'] | sort(case_sensitive=true) }}{{ ['b', 'B', 'a'] | unique | list }}|{{ o | dictsort }}|{{ {'x': 2, 'y': 1} | dictsort(by='value') }}|{{ l | sum }}{{ l | max }}{{ l | min }}{{ e | max }}|{{ p[:2] | sum(attribute='x') }}",
    "{{ p | map(attribute='x') | list }}|{{ p | map(attribute='x', default=0) | list }}|{{ ['a', 'b'] | map('upper') | list }}|{{ ['a b', 'c'] | map('replace', 'a', 'x') | join(',') }}|{{ l | select('gt', 1) | list }}|{{ l | reject('odd') | list }}|{{ [0, 1, ''] | select | list }}|{{ p | selectattr('x') | map(attribute='name') | list }}|{{ p | selectattr('name', 'equalto', 'a') | list }}|{{ p | rejectattr('x', 'defined') | list }}|{{ p | selectattr('name', 'in', ['a', 'b']) | list | length }}",
    "{% if e | selectattr('x') %}generators are true{% endif %}{% set g = l | map('string') %}{{ g | join }}{{ g | join }}", "{{ '12' | int }}{{ ' 3 ' | int }}{{ 'x' | int }}{{ 'x' | int(5) }}{{ '1.9' | int }}{{ 2.7 | int }}{{ 'ff' | int(base=16) }}",
    "{{ 'a\nb\n\nc' | indent }}|{{ 'a\nb' | indent(2, true) }}|{{ 'a\n\nb\n' | indent(2, blank=true) }}|{{ 'a\nb' | indent('> ') }}|{{ '' | indent(first=true) }}|{{ 'a <b> & \"c\" \\'d\\'' | e }}|{{ '<' | safe }}|{{ l | string }}|{{ o | items | list }}",
    "{{ n is number }}{{ t is number }}{{ n is integer }}{{ t is integer }}{{ f is float }}{{ w is string }}{{ o is mapping }}{{ l is sequence }}{{ w is sequence }}{{ o is sequence }}{{ n is iterable }}{{ l is iterable }}{{ w is iterable }}{{ t is boolean }}{{ t is true }}{{ t is false }}{{ z is none }}{{ range is callable }}{{ missing is sequence }}{{ missing is iterable }}{{ missing is mapping }}",
    "{{ n is odd }}{{ n is even }}{{ n is eq 7 }}{{ n is ne 7 }}{{ n is gt 3 }}{{ n is lessthan 3 }}{{ n is in [7] }}{{ n is not in [7] }}{{ z is sameas none }}{{ 1 is sameas true }}{{ n is equalto(7) and t is defined }}{{ w is not none }}{{ n is not string }}",
    "[{{ s.strip() }}][{{ s.lstrip() }}][{{ s.rstrip() }}][{{ 'xyx'.strip('x') }}]{{ w.split() }}{{ w.split(' ') }}{{ w.split(' ', 1) }}{{ 'a,b,,c'.split(',') }}{{ ''.split() }}{{ ''.split(',') }}{{ 'a-b-c'.rsplit('-', 1) }}{{ ' a b  c '.split(none, 1) }}{{ 'a\nb\r\nc\n'.splitlines() }}",
    "{{ w.startswith('one') }}{{ w.endswith(('x', 'three')) }}{{ w.upper() }}{{ 'AB'.lower() }}{{ \"they're x2y\".title() }}{{ 'hELLO é'.capitalize() }}{{ w.replace('t', 'T') }}{{ w.replace('e', '', 1) }}{{ w.find('two') }}{{ s.find('zz') }}{{ w.count('e') }}{{ w.index('t') }}{{ ', '.join(['a', 'b']) }}{{ 'abc'.removeprefix('a').removesuffix('c') }}{{ '12'.isdigit() }}{{ l.index(1) }}{{ l.count(9) }}",
    "{{ q }}{{ [q, 'a\n', \"it's\", 'é\x01'] }}{{ [none, true, 1.0, (1,)] }}{{ l }}{{ o }}{{ 1e100 }}{{ 123456789012345680.0 }}{{ 0.0001 }}{{ 0.00001 }}{{ -0.0 }}", "{{ strftime_now('%Y-%m-%d %H:%M:%S %B %b %A %a %j %y %I %p %%') }}{{ strftime_now('%d %B, %Y') }}",
    "{% if n > 10 %}a{% elif n > 5 %}b{% elif t %}c{% else %}d{% endif %}{% if missing %}x{% endif %}{% if e %}x{% elif o %}y{% endif %}", "{%- if t -%}\n\n {{- 'x' -}} \n{%- endif -%}  \n  y", "{{ 'a' | upper ~ 'b' | lower }}{{ -3 | int }}{{ (1, 2) | join('+') }}{{ not missing is defined }}{{ n + 1 | string | length }}{{ [1, 2][0] + l | length }}",
    "{{ l | map('add') | list }}", "{{ raise_exception('Bad ' ~ n) }}", "{{ missing.x }}", "{{ missing + 1 }}", "{{ 1 / 0 }}", "{{ l.append(1) }}", "{{ 'a' + 1 }}", "{{ z | length }}", "{% set n.x = 1 %}", "{% for a, b in [1] %}{% endfor %}", "{{ none.x.y }}", "{{ l | tojson(5, 6, 7, 8, 9) }}", "{{ 1 < 'a' }}", "{{ {[1]: 2} }}",
]

TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


def render(source, messages, variables, prompt):
    variables = dict(variables)
    tools, documents = variables.pop("tools", None), variables.pop("documents", None)
    messages = chat_template_utils._normalize_chat_messages(messages)
    try:
        texts, _ = chat_template_utils.render_jinja_template(
            [messages], tools=tools, documents=documents, chat_template=source, add_generation_prompt=prompt, **variables)
        return texts[0]
    except Exception:  # the template refuses the conversation, or is wrong
        return None


def run(name, source, messages, variables):
    texts = [render(source, messages, variables, prompt) for prompt in (False, True)]
    return {"name": name, "variables": {**variables, "messages": messages}, "texts": texts}


def lines_of(template):
    """The JSON of a template: a line for its source, and one for each run."""
    source, runs = template.values()
    runs = ",\n".join(json.dumps(run, ensure_ascii=False) for run in runs)
    return f'{{"template": {json.dumps(source, ensure_ascii=False)}, "runs": [\n{runs}]}}'


def main():
    templates = [{"template": source, "runs": [run(f"{model}, {talk}", source, messages, {**TOKENS, **variables})
                                               for talk, (messages, variables) in TALKS.items()]} for model, source in MODELS.items()]
    templates += [{"template": source, "runs": [run(f"piece {i}", source, [U], VALUES)]} for i, source in enumerate(PIECES)]
    path = os.path.join(os.path.dirname(__file__), "../unit/text/chat_cases.json")
    text = f'{{"time": {NOW}, "templates": [\n' + ",\n".join(map(lines_of, templates)) + "\n]}\n"
    if sys.argv[1:] == ["--check"]:
        with open(path, encoding="utf-8") as file:
            return None if file.read() == text else "chat_cases: transformers makes other texts: run tests/text/chat_cases.py"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    runs = [run for template in templates for run in template["runs"]]
    failed = [run["name"] for run in runs if run["texts"][0] is None]
    print(f"{len(templates)} templates, {len(runs)} runs; errors are expected in: {', '.join(failed)}")
    return None


if __name__ == "__main__":
    sys.exit(main())
