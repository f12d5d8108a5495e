"""The room where a model is sized: plan, verdict, picture, regions."""
