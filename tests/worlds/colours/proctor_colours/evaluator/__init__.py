"""What the evaluator needs: how colours are read and scored."""
