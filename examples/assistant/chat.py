"""Chat with the assistant by OpenAI's own client, and print its answer as it comes.

    python chat.py "What is the with statement?"
    python chat.py --url http://localhost:8000/v1 --model assistant --key SECRET "What does len do?"

Each question is answered by itself: the assistant's models know one question and its answer.
"""

import argparse
import sys

import openai


def main() -> int:
    """Print an answer; return 1 if the assistant refused to give one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("prompt")
    parser.add_argument("--url", default="http://localhost:8000/v1", help="where OpenAI's API is")
    parser.add_argument("--model", default="assistant")
    parser.add_argument("--key", default="none", help="an API key, where the server requires one")
    parser.add_argument("--max-tokens", type=int, default=60)
    args = parser.parse_args()
    with openai.OpenAI(base_url=args.url, api_key=args.key) as client:
        stream = client.chat.completions.create(
            model=args.model,
            messages=[{"role": "user", "content": args.prompt}],
            max_tokens=args.max_tokens,
            stream=True,
        )
        reason = None
        for chunk in stream:
            (choice,) = chunk.choices
            print(choice.delta.content or "", end="", flush=True)
            reason = choice.finish_reason or reason
    print()
    return 1 if reason == "content_filter" else 0


if __name__ == "__main__":
    sys.exit(main())
